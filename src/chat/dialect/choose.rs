//! Which dialect a model writes in: what its template shows, then its type, then whatever its marks say.

use super::{DIALECTS, Dialect, FORMATS};

/// What a user says of the dialect, instead of what the model says of itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct Names<'a> {
    /// A dialect or a format of calls.
    pub tools: Option<&'a str>,
    /// A dialect whose thoughts stand between the same tags, or `none`.
    pub reasoning: Option<&'a str>,
}

/// The dialect of a model of this type with this chat template.
///
/// # Errors
/// A name that nothing has.
pub fn choose(model_type: &str, template: &str, names: Names<'_>) -> Result<&'static Dialect, String> {
    let shows =
        |row: &&&Dialect| !row.template_tags.is_empty() && row.template_tags.iter().all(|tag| template.contains(tag));
    let by_template = DIALECTS.iter().find(shows);
    let by_type = || DIALECTS.iter().find(|row| row.model_types.contains(&model_type));
    let own = by_template.or_else(by_type).copied().unwrap_or_else(Dialect::auto);
    overridden(own, names)
}

fn overridden(own: &'static Dialect, names: Names<'_>) -> Result<&'static Dialect, String> {
    if names.tools.is_none() && names.reasoning.is_none() {
        return Ok(own);
    }
    let mut dialect = Dialect { ..*own };
    if let Some(name) = names.tools {
        let format = FORMATS.iter().position(|format| format.name == name);
        match (Dialect::named(name), format) {
            (Some(row), _) => dialect = Dialect { reasoning: own.reasoning, ..*row },
            (None, Some(at)) => dialect.tools = &FORMATS[at..=at],
            (None, None) => {
                let known = DIALECTS.iter().map(|row| row.name).chain(FORMATS.iter().map(|format| format.name));
                return Err(unknown("tool format", name, known));
            }
        }
    }
    match names.reasoning {
        None => {}
        Some("none") => dialect.reasoning = None,
        Some(name) => {
            let Some(row) = Dialect::named(name) else {
                let known = DIALECTS.iter().filter(|row| row.reasoning.is_some()).map(|row| row.name);
                return Err(unknown("kind of reasoning", name, known.chain(["none"])));
            };
            dialect.reasoning = row.reasoning;
        }
    }
    // Once a model: it lives as long as the model may be asked.
    Ok(Box::leak(Box::new(dialect)))
}

fn unknown<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let mut known: Vec<&str> = known.collect();
    known.sort_unstable();
    known.dedup();
    format!("no {what} is called {name}; there are {}", known.join(", "))
}
