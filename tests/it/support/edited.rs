//! A copy of a checkpoint of one safetensors file, to change and to save.

use std::{fs, path::Path};

use serde_json::{Map, Value, json};

/// The copy. Nothing is on disk before [`Edited::save`].
pub struct Edited {
    pub config: Value,
    /// The safetensors header: name → dtype, shape, data_offsets.
    pub header: Map<String, Value>,
    pub data: Vec<u8>,
}

impl Edited {
    pub fn of(folder: &Path) -> Edited {
        let config = fs::read(folder.join("config.json")).expect("a config");
        let file = fs::read(folder.join("model.safetensors")).expect("one file of weights");
        let (length, rest) = file.split_at(8);
        let length = u64::from_le_bytes(length.try_into().expect("8 bytes")) as usize;
        Edited {
            config: serde_json::from_slice(&config).expect("JSON"),
            header: serde_json::from_slice(&rest[..length]).expect("JSON"),
            data: rest[length..].to_vec(),
        }
    }

    /// Sets a key of the config, given as a path of keys; null removes it.
    pub fn set(mut self, path: &[&str], value: Value) -> Edited {
        let (last, parents) = path.split_last().expect("a key");
        let parent = parents.iter().fold(&mut self.config, |object, key| &mut object[*key]);
        match value {
            Value::Null => parent.as_object_mut().expect("an object").shift_remove(*last),
            value => parent.as_object_mut().expect("an object").insert((*last).to_owned(), value),
        };
        self
    }

    /// Gives every tensor another name.
    pub fn rename(mut self, new: impl Fn(&str) -> String) -> Edited {
        self.header = self.header.into_iter().map(|(name, tensor)| (new(&name), tensor)).collect();
        self
    }

    /// Takes a tensor out, bytes and all.
    pub fn remove(mut self, name: &str) -> Edited {
        let tensor = self.header.shift_remove(name).expect("a tensor of this name");
        let [start, end] = offsets(&tensor);
        self.data.drain(start..end);
        for tensor in self.header.iter_mut().filter(|(name, _)| *name != "__metadata__").map(|(_, tensor)| tensor) {
            let [from, to] = offsets(tensor);
            if from >= end {
                tensor["data_offsets"] = json!([from - (end - start), to - (end - start)]);
            }
        }
        self
    }

    /// Puts a tensor of zeros in.
    pub fn add(mut self, name: &str, shape: &[usize]) -> Edited {
        let (start, length) = (self.data.len(), 4 * shape.iter().product::<usize>());
        self.data.resize(start + length, 0);
        let tensor = json!({"dtype": "F32", "shape": shape, "data_offsets": [start, start + length]});
        self.header.insert(name.to_owned(), tensor);
        self
    }

    /// Says another shape of as many elements.
    pub fn reshape(mut self, name: &str, shape: &[usize]) -> Edited {
        self.header[name]["shape"] = json!(shape);
        self
    }

    /// Writes it; the folder goes with what is returned.
    pub fn save(&self) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut header = serde_json::to_vec(&self.header).expect("JSON");
        // The format aligns the data by spaces.
        header.resize(header.len().next_multiple_of(8), b' ');
        let mut file = (header.len() as u64).to_le_bytes().to_vec();
        file.extend(header);
        file.extend(&self.data);
        fs::write(folder.path().join("model.safetensors"), file).expect("written");
        fs::write(folder.path().join("config.json"), self.config.to_string()).expect("written");
        folder
    }
}

fn offsets(tensor: &Value) -> [usize; 2] {
    let offset = |index: usize| tensor["data_offsets"][index].as_u64().expect("an offset") as usize;
    [offset(0), offset(1)]
}
