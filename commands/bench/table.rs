//! The report for people.

use comfy_table::{CellAlignment, Table, presets};

use super::{
    Report, Subject,
    row::{Demand, Kind, Ratio, Row, Spread},
};

const HEADER: [&str; 9] =
    ["measure", "by", "streams", "prompt", "answer", "tokens/s", "each", "first token", "remembered"];

/// What was measured, on what, every row, and what the numbers are to be compared with.
pub fn table(report: &Report) -> String {
    let share = report.subject.as_ref().is_some_and(|subject| subject.roofline.is_some());
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN);
    table.set_header(HEADER.into_iter().chain(share.then_some("of the roofline")));
    for row in &report.rows {
        table.add_row(cells(row).into_iter().chain(share.then(|| roofline(report, row))));
    }
    table.column_iter_mut().skip(2).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    let mut parts = Vec::new();
    parts.extend(report.subject.as_ref().map(heading));
    parts.push(table.to_string());
    parts.push(format!(
        "Medians of {}. Tokens/s are the prompt's for prefill and prefix, the answers' together for the others.",
        report.arguments.repeat
    ));
    parts.extend(report.ratios.iter().map(|ratio| {
        let Spread { median, min, max } = Spread::of(ratio.pairs.iter().copied());
        let Ratio { streams, of, to, .. } = ratio;
        format!("{streams} at once, {of} to {to}, pair by pair: {median:.2} ({min:.2} to {max:.2})")
    }));
    parts.extend(report.subject.as_ref().map(footing));
    parts.join("\n")
}

fn cells(row: &Row) -> Vec<String> {
    let median = |value: fn(&super::row::Run) -> f64| Spread::of(row.runs.iter().map(value)).median;
    let reading = matches!(row.kind, Kind::Prefill | Kind::Cold | Kind::Warm | Kind::Shared);
    vec![
        row.kind.name().into(),
        row.server.clone(),
        row.streams.to_string(),
        row.prompt.to_string(),
        row.answer.to_string(),
        number(median(|run| run.rate)),
        if reading { String::new() } else { number(median(|run| run.each)) },
        milliseconds(median(|run| run.first)),
        format!("{:.0} %", 100.0 * median(super::row::Run::hits)),
    ]
}

/// The share of what the machine could do, where one thing limits the row.
fn roofline(report: &Report, row: &Row) -> String {
    let share = super::share(report, row);
    match (row.demand, share) {
        (Some(Demand::Bytes(_)), Some(share)) => format!("{:.0} % of reads", 100.0 * share),
        (Some(Demand::Products(_)), Some(share)) => format!("{:.0} % of products", 100.0 * share),
        _ => String::new(),
    }
}

fn heading(subject: &Subject) -> String {
    let mut text = format!("{} on {}", subject.name, super::machine::processor_name());
    if let Some(processor) = &subject.processor {
        text += &format!(", {} threads, {}", processor.threads, processor.level);
    }
    text
}

fn footing(subject: &Subject) -> String {
    let mut lines = Vec::new();
    if let Some(roofline) = &subject.roofline {
        lines.push(format!(
            "This machine reads {:.1} GB/s and adds {:.0} G products of bytes a second; a token of an answer takes {:.0} MB \
             of weights and {:.0} M products.",
            roofline.reads / 1e9,
            roofline.products / 1e9,
            subject.cost.bytes_to_write(1, 0) / 1e6,
            subject.cost.products_to_write() / 1e6,
        ));
    }
    let megabytes = |bytes: Option<u64>| bytes.map(|bytes| format!("{:.0} MB", bytes as f64 / 1e6));
    let memory = &subject.memory;
    let parts = [("loaded", memory.loaded), ("now", memory.now), ("at most", memory.peak)];
    let said: Vec<String> =
        parts.into_iter().filter_map(|(when, bytes)| Some(format!("{} {when}", megabytes(bytes)?))).collect();
    lines.push(format!("Memory: {}.", said.join(", ")));
    lines.join("\n")
}

fn number(value: f64) -> String {
    if value < 100.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

fn milliseconds(seconds: f64) -> String {
    if seconds < 1.0 { format!("{:.1} ms", seconds * 1e3) } else { format!("{seconds:.2} s") }
}
