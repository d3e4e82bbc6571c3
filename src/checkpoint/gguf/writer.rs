//! Writes small GGUF files for tests.

pub(in super::super) use super::reader::Value;

/// Metadata and tensors to write. A tensor: name, dimensions innermost first, type number, bytes.
pub struct Writer {
    /// In this order.
    pub metadata: Vec<(String, Value)>,
    /// In this order.
    pub tensors: Vec<(String, Vec<u64>, u32, Vec<u8>)>,
}

impl Writer {
    /// A llama of one layer and five tokens, complete but for most of its tensors.
    pub fn llama() -> Writer {
        let mut writer = Writer { metadata: Vec::new(), tensors: Vec::new() };
        writer.text("general.architecture", "llama");
        for (key, value) in [
            ("context_length", 64),
            ("embedding_length", 32),
            ("block_count", 1),
            ("feed_forward_length", 64),
            ("attention.head_count", 4),
            ("attention.head_count_kv", 2),
        ] {
            writer.set(&format!("llama.{key}"), Value::Unsigned(value));
        }
        writer.set("llama.attention.layer_norm_rms_epsilon", Value::Float(1e-5));
        writer.text("tokenizer.ggml.model", "gpt2");
        writer.text("tokenizer.ggml.pre", "smollm");
        writer.strings("tokenizer.ggml.tokens", &["<|endoftext|>", "<|im_end|>", "a", "b", "ab"]);
        let types = [3, 3, 1, 1, 1].map(Value::Signed);
        writer.set("tokenizer.ggml.token_type", Value::List(types.to_vec()));
        writer.strings("tokenizer.ggml.merges", &["a b"]);
        writer.set("tokenizer.ggml.bos_token_id", Value::Unsigned(0));
        writer.set("tokenizer.ggml.eos_token_id", Value::Unsigned(0));
        writer.text("tokenizer.chat_template", "{{ messages }}");
        writer.tensors.push(("token_embd.weight".into(), vec![32, 5], 3, (0..100).collect()));
        writer.tensors.push(("blk.0.attn_q.weight".into(), vec![32, 32], 2, vec![7; 18 * 32]));
        writer.tensors.push(("output_norm.weight".into(), vec![32], 0, vec![1; 128]));
        writer
    }

    /// Sets a key, in the place of what it had.
    pub fn set(&mut self, key: &str, value: Value) {
        self.metadata.retain(|(existing, _)| existing != key);
        self.metadata.push((key.to_owned(), value));
    }

    /// Sets a key to a string.
    pub fn text(&mut self, key: &str, text: &str) {
        self.set(key, Value::Text(text.to_owned()));
    }

    /// Sets a key to a list of strings.
    pub fn strings(&mut self, key: &str, strings: &[&str]) {
        self.set(key, Value::List(strings.iter().map(|text| Value::Text((*text).to_owned())).collect()));
    }

    /// The file.
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = b"GGUF".to_vec();
        out.extend(3u32.to_le_bytes());
        out.extend((self.tensors.len() as u64).to_le_bytes());
        out.extend((self.metadata.len() as u64).to_le_bytes());
        for (key, value) in &self.metadata {
            write_string(&mut out, key);
            out.extend(kind(value).to_le_bytes());
            write_value(&mut out, value);
        }
        let mut offset = 0u64;
        for (name, dimensions, number, bytes) in &self.tensors {
            write_string(&mut out, name);
            out.extend((dimensions.len() as u32).to_le_bytes());
            dimensions.iter().for_each(|dimension| out.extend(dimension.to_le_bytes()));
            out.extend(number.to_le_bytes());
            out.extend(offset.to_le_bytes());
            offset = (offset + bytes.len() as u64).next_multiple_of(32);
        }
        for (_, _, _, bytes) in &self.tensors {
            out.resize(out.len().next_multiple_of(32), 0);
            out.extend(bytes);
        }
        out
    }
}

fn write_string(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

fn kind(value: &Value) -> u32 {
    match value {
        Value::Unsigned(_) => 10,
        Value::Signed(_) => 5,
        Value::Float(_) => 6,
        Value::Boolean(_) => 7,
        Value::Text(_) => 8,
        Value::List(_) => 9,
    }
}

fn write_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Unsigned(value) => out.extend(value.to_le_bytes()),
        Value::Signed(value) => out.extend((*value as i32).to_le_bytes()),
        Value::Float(value) => out.extend((*value as f32).to_le_bytes()),
        Value::Boolean(value) => out.push(u8::from(*value)),
        Value::Text(text) => write_string(out, text),
        Value::List(list) => {
            out.extend(list.first().map_or(8, kind).to_le_bytes());
            out.extend((list.len() as u64).to_le_bytes());
            list.iter().for_each(|item| write_value(out, item));
        }
    }
}
