//! The rows as CSV (RFC 4180): medians, one line a row under one of names.

use super::{
    Report,
    row::{Row, Run, median},
    share,
};

const NAMES: &str = "measure,server,streams,prompt,answer,tokens_per_second,tokens_per_second_each,\
    first_token_seconds,hit_rate,share_of_roofline";

/// The report's rows under a line of names; times in seconds.
pub fn csv(report: &Report) -> String {
    let lines = report.rows.iter().map(|row| line(report, row));
    std::iter::once(format!("{NAMES}\n")).chain(lines).collect()
}

fn line(report: &Report, row: &Row) -> String {
    let of = |value: fn(&Run) -> f64| median(row.runs.iter().map(value));
    let Row { kind, server, streams, prompt, answer, .. } = row;
    let rate = of(|run| run.rate);
    let each = of(|run| run.each);
    let first = of(|run| run.first);
    let hits = of(Run::hits);
    let share = share(report, row).map_or(String::new(), |share| format!("{share:.4}"));
    // An address may have a comma in it.
    let server =
        if server.contains([',', '"']) { format!("\"{}\"", server.replace('"', "\"\"")) } else { server.clone() };
    format!("{},{server},{streams},{prompt},{answer},{rate:.3},{each:.3},{first:.6},{hits:.4},{share}\n", kind.name())
}
