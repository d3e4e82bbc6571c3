//! Where a checkpoint's chat templates are written down.

use std::path::Path;

use serde_json::Value;

use super::text::Text;
use super::{Error, files_with_extension, read_json};

/// A model's chat templates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Templates {
    /// The one for requests without tools, or for all.
    pub default: String,
    /// The one called "tool_use", for requests with tools.
    pub tool_use: Option<String>,
    /// The texts that a template may include, by their path in the model's folder.
    pub files: Vec<(String, String)>,
}

/// Named templates, first come first.
#[derive(Default)]
struct Found(Vec<(String, String)>);

const DEFAULT: &str = "default";
const FILE: &str = "chat_template.jinja";
const FOLDER: &str = "additional_chat_templates";

/// The templates of a checkpoint; `None` where it has none at all.
pub(super) fn of(text: &Text) -> Result<Option<Templates>, Error> {
    match text {
        Text::Gguf(vocabulary) => Ok(vocabulary.template.as_ref().map(|default| Templates {
            default: default.clone(),
            tool_use: vocabulary.tool_template.clone(),
            files: Vec::new(),
        })),
        Text::Folder { folder, tokenizer_config, .. } => of_folder(folder, tokenizer_config.as_ref()),
    }
}

fn of_folder(folder: &Path, tokenizer_config: Option<&Value>) -> Result<Option<Templates>, Error> {
    let files = files(folder)?;
    let mut found = Found::default();
    for (path, text) in &files {
        if path == FILE {
            found.add(DEFAULT, text);
        } else if let Some(name) = path.strip_prefix(FOLDER).and_then(|path| path.strip_prefix('/')) {
            found.add(name.trim_end_matches(".jinja"), text);
        }
    }
    let path = folder.join("chat_template.json");
    if found.get(DEFAULT).is_none() && path.exists() {
        match read_json(&path)?.get("chat_template") {
            Some(template) => found.add_value(&path, template)?,
            None => return Err(Error::damaged(&path, "it has no \"chat_template\"")),
        }
    }
    let template = tokenizer_config.and_then(|config| config.get("chat_template"));
    if let Some(template) = template.filter(|_| found.get(DEFAULT).is_none()) {
        found.add_value(&folder.join("tokenizer_config.json"), template)?;
    }
    found.choose(folder, files)
}

/// The folder's .jinja files and those of its folder of additional templates.
fn files(folder: &Path) -> Result<Vec<(String, String)>, Error> {
    let mut files = Vec::new();
    let additional = folder.join(FOLDER);
    for (folder, prefix) in [(folder, String::new()), (&additional, format!("{FOLDER}/"))] {
        if !folder.is_dir() {
            continue;
        }
        for path in files_with_extension(folder, "jinja")? {
            let text = std::fs::read_to_string(&path).map_err(|error| Error::io(&path, error))?;
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            files.push((format!("{prefix}{name}"), text));
        }
    }
    Ok(files)
}

impl Found {
    fn add(&mut self, name: &str, text: &str) {
        if self.get(name).is_none() {
            self.0.push((name.to_owned(), text.to_owned()));
        }
    }

    /// A template is a string, or a list of named ones.
    fn add_value(&mut self, path: &Path, value: &Value) -> Result<(), Error> {
        if let Some(text) = value.as_str() {
            self.add(DEFAULT, text);
            return Ok(());
        }
        if value.is_null() {
            return Ok(());
        }
        let entry = |entry: &Value| {
            Some((entry.get("name")?.as_str()?.to_owned(), entry.get("template")?.as_str()?.to_owned()))
        };
        match value.as_array().and_then(|entries| entries.iter().map(entry).collect::<Option<Vec<_>>>()) {
            Some(named) if !named.is_empty() => {
                named.iter().for_each(|(name, text)| self.add(name, text));
                Ok(())
            }
            _ => Err(Error::damaged(path, "its \"chat_template\" is neither a string nor a list of named templates")),
        }
    }

    fn get(&self, name: &str) -> Option<&String> {
        self.0.iter().find(|(found, _)| found == name).map(|(_, text)| text)
    }

    /// A lone template is the default, whatever it is called.
    fn choose(self, folder: &Path, files: Vec<(String, String)>) -> Result<Option<Templates>, Error> {
        let default = match self.0.as_slice() {
            [] => return Ok(None),
            [(_, only)] => Some(only),
            _ => self.get(DEFAULT),
        };
        let Some(default) = default else {
            let names: Vec<&str> = self.0.iter().map(|(name, _)| name.as_str()).collect();
            let names = names.join(", ");
            return Err(Error::unsupported(
                folder,
                format!("of its chat templates ({names}) none is called \"default\""),
            ));
        };
        Ok(Some(Templates { default: default.clone(), tool_use: self.get("tool_use").cloned(), files }))
    }
}
