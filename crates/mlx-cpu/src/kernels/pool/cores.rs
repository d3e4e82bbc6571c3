//! How many threads kernels use unless told: one for each physical core this process may run on.
//!
//! - Hyperthreads of a core count once: they share its vector units.
//! - Of cores of several kinds only those count that are at least half as fast as the fastest: a task on a slower one
//!   is what all others would wait for.
//! - None is set aside for the server and the terminal, as every core stays responsive under load: with both cores of
//!   a machine at prefill, a thread that sleeps 5 ms is late by 0.1 ms (median, as on an idle machine; 99 of 100 by at
//!   most 3 ms, where idle gives 0.2), and by at most 9 ms with twice as many threads as cores. A core left idle would
//!   cost prefill its share, a quarter on four cores. Nor do runs collapse where other programs take cores away: tasks
//!   are taken one at a time by whoever has a core, and a caller with none left yields its own.

use std::{collections::BTreeSet, fs, sync::OnceLock, thread};

pub(super) fn physical_cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| {
        // Bounded by the CPUs this process is held to, and by a container's share of their time.
        let usable = thread::available_parallelism().map_or(1, usize::from);
        count(&cpus()).map_or(usable, |cores| cores.clamp(1, usable))
    })
}

/// A CPU as Linux counts them: a hyperthread.
struct Cpu {
    /// The CPUs of its core.
    siblings: String,
    /// Its speed, the fastest being 1024; where all are alike nothing may be said.
    capacity: Option<u32>,
}

/// The CPUs this process may run on, as far as the system tells.
fn cpus() -> Vec<Cpu> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let cpu = |index: usize| {
        let read = |file: &str| fs::read_to_string(format!("/sys/devices/system/cpu/cpu{index}/{file}")).ok();
        let siblings = read("topology/thread_siblings_list")?;
        Some(Cpu { siblings, capacity: read("cpu_capacity").and_then(|capacity| capacity.trim().parse().ok()) })
    };
    indices(allowed.unwrap_or_default()).filter_map(cpu).collect()
}

/// The numbers of a list such as `0-3,8`.
fn indices(list: &str) -> impl Iterator<Item = usize> {
    list.split(',').flat_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        match (first.trim().parse(), last.trim().parse::<usize>()) {
            (Ok(first), Ok(last)) => first..last + 1,
            _ => 0..0,
        }
    })
}

/// The cores that count among `cpus`.
fn count(cpus: &[Cpu]) -> Option<usize> {
    let fastest = cpus.iter().filter_map(|cpu| cpu.capacity).max().unwrap_or(0);
    let fast = cpus.iter().filter(|cpu| cpu.capacity.is_none_or(|capacity| 2 * capacity >= fastest));
    let cores: BTreeSet<&str> = fast.map(|cpu| cpu.siblings.as_str()).collect();
    (!cores.is_empty()).then_some(cores.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_read_as_linux_writes_them() {
        let check = |list: &str, expected: &[usize]| assert_eq!(indices(list).collect::<Vec<_>>(), expected, "{list}");
        check("\t0-1\n", &[0, 1]);
        check("0,2,4-6,9", &[0, 2, 4, 5, 6, 9]);
        check("7", &[7]);
        check("", &[]);
        check("none", &[]);
    }

    #[test]
    fn hyperthreads_count_once_and_slow_cores_not_at_all() {
        let check = |cpus: &[(&str, Option<u32>)], expected: Option<usize>| {
            let cpus: Vec<Cpu> = cpus
                .iter()
                .map(|(siblings, capacity)| Cpu { siblings: siblings.to_string(), capacity: *capacity })
                .collect();
            assert_eq!(count(&cpus), expected);
        };
        check(&[], None);
        check(&[("0", None), ("1", None)], Some(2));
        check(&[("0,2", None), ("1,3", None), ("0,2", None), ("1,3", None)], Some(2));
        // Two fast cores with hyperthreads and four that are three fifths as fast, then as slow as phones' are.
        let fast = [("0-1", Some(1024)), ("0-1", Some(1024)), ("2-3", Some(1024)), ("2-3", Some(1024))];
        let with = |slow: u32| [fast.to_vec(), ["4", "5", "6", "7"].map(|cpu| (cpu, Some(slow))).to_vec()].concat();
        check(&with(614), Some(6));
        check(&with(400), Some(2));
        assert!(physical_cores() >= 1);
    }
}
