//! The machine: its processor's name, and the memory that this process has of it.

use sysinfo::{ProcessRefreshKind, ProcessesToUpdate, System};

/// Memory of this process, in bytes; `None` where the system does not tell.
pub struct Memory {
    /// When the model was loaded and nothing had run.
    pub loaded: Option<u64>,
    /// After all measurements.
    pub now: Option<u64>,
    /// The most there ever was.
    pub peak: Option<u64>,
}

/// The processor's name as the system has it.
pub fn processor_name() -> String {
    let mut system = System::new();
    system.refresh_cpu_all();
    system.cpus().first().map_or_else(String::new, |cpu| cpu.brand().trim().to_owned())
}

/// What this process has in memory now.
pub fn resident() -> Option<u64> {
    let own = sysinfo::get_current_pid().ok()?;
    let mut system = System::new();
    let what = ProcessRefreshKind::nothing().with_memory();
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&[own]), false, what);
    system.process(own).map(sysinfo::Process::memory)
}

/// The most this process ever had in memory: Linux alone tells.
pub fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

/// Bytes to measure reading with: several times the caches of any machine, and at most an eighth of this one's memory.
pub fn roofline_buffer() -> usize {
    (crate::load::memory() / 8).min(1 << 30) as usize
}
