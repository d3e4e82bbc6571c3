//! The report as one JSON document, with every run.

use serde_json::{Value, json};

use super::{
    Report, Subject, machine,
    row::{Demand, Ratio, Row, Run, Spread},
    share,
};

/// The report with its machine, model, settings, rows and ratios.
pub fn json(report: &Report) -> Value {
    let arguments = report.arguments;
    json!({
        "mettle": env!("CARGO_PKG_VERSION"),
        "machine": machine_of(report.subject.as_ref()),
        "model": report.subject.as_ref().map(model),
        "memory": report.subject.as_ref().map(|Subject { memory, .. }| json!({
            "loaded_bytes": memory.loaded, "now_bytes": memory.now, "peak_bytes": memory.peak,
        })),
        "settings": {
            "prompt": arguments.prompt, "context": arguments.context, "batch": arguments.batch,
            "concurrency": arguments.concurrency, "answer": arguments.answer, "repeat": arguments.repeat,
            "prefill_chunk": arguments.prefill_chunk, "exact": arguments.device.exact, "against": arguments.against,
        },
        "rows": report.rows.iter().map(|row| row_of(report, row)).collect::<Vec<_>>(),
        "ratios": report.ratios.iter().map(ratio).collect::<Vec<_>>(),
    })
}

fn machine_of(subject: Option<&Subject>) -> Value {
    let processor = subject.and_then(|subject| subject.processor.as_ref());
    let roofline = subject.and_then(|subject| subject.roofline);
    json!({
        "cpu": machine::processor_name(),
        "memory_bytes": crate::load::memory(),
        "threads": processor.map(|processor| processor.threads),
        "level": processor.map(|processor| processor.level.as_str()),
        "read_bytes_per_second": roofline.map(|roofline| roofline.reads),
        "products_per_second": roofline.map(|roofline| roofline.products),
    })
}

fn model(subject: &Subject) -> Value {
    let cost = &subject.cost;
    json!({
        "name": subject.name,
        "bytes_per_step": cost.shared_bytes(),
        "expert_bytes": cost.expert_bytes(),
        "kv_bytes_at_4096": cost.kv_bytes(4096),
        "products_per_token": cost.products_to_write(),
    })
}

fn row_of(report: &Report, row: &Row) -> Value {
    json!({
        "measure": row.kind.name(),
        "server": row.server,
        "streams": row.streams,
        "prompt": row.prompt,
        "answer": row.answer,
        "tokens_per_second": spread(row, |run| run.rate),
        "tokens_per_second_each": spread(row, |run| run.each),
        "first_token_seconds": spread(row, |run| run.first),
        "hit_rate": spread(row, Run::hits),
        "limit": row.demand.map(|demand| match demand {
            Demand::Bytes(bytes) => json!({"bytes_per_token": bytes}),
            Demand::Products(products) => json!({"products_per_token": products}),
        }),
        "share_of_roofline": share(report, row),
        "runs": row.runs.iter().map(run).collect::<Vec<_>>(),
    })
}

fn run(run: &Run) -> Value {
    json!({
        "tokens_per_second": run.rate,
        "tokens_per_second_each": run.each,
        "first_token_seconds": run.first,
        "prompt_tokens": run.prompt,
        "cached_tokens": run.cached,
        "answer_tokens": run.answer,
    })
}

fn ratio(ratio: &Ratio) -> Value {
    let Spread { median, min, max } = Spread::of(ratio.pairs.iter().copied());
    json!({
        "streams": ratio.streams, "of": ratio.of, "to": ratio.to, "median": median, "min": min, "max": max,
        "pairs": ratio.pairs,
    })
}

fn spread(row: &Row, value: impl Fn(&Run) -> f64) -> Value {
    let Spread { median, min, max } = Spread::of(row.runs.iter().map(value));
    json!({"median": median, "min": min, "max": max})
}
