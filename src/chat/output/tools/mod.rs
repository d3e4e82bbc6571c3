//! How families of models write calls of tools, a file each: reading them as they come, writing them into a
//! conversation's past, and the grammar that makes a model write one.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use serde_json::Value;

use super::{emitter::Output, input::Input, json};
use crate::chat::{Tool, request::ToolCall, schema::Shape};

mod apertus;
mod apriel;
mod arguments;
mod braces;
mod buried;
mod calling_tool;
mod cohere;
mod command_r;
mod deepseek;
mod deepseek_v31;
mod deepseek_v32;
mod deepseek_v4;
mod firefunction;
mod function_gemma;
mod function_tag;
pub(in crate::chat) mod functionary;
mod functionary_llama3;
pub(in crate::chat) mod functionary_v2;
mod gemma4;
mod gigachat;
mod gigachat_v3;
mod glm;
mod glm47;
mod granite;
pub(in crate::chat) mod harmony;
mod hermes;
mod hunyuan;
mod inkling;
mod k2_horizon;
mod kept;
mod kimi;
mod kimi_k3;
mod laguna;
mod lfm2;
mod ling;
mod llama;
mod longcat;
mod minicpm;
mod minimax;
mod minimax_m1;
mod minimax_m3;
mod mistral;
mod mistral_args;
mod mistral_ids;
mod muse;
mod nemotron;
mod nemotron_nano;
mod nesting;
mod notation;
mod object;
mod olmo3;
mod pairs;
mod pythonic;
mod qwen_xml;
mod reka;
mod rules;
mod seed_oss;
mod solar;
mod spelling;
mod statement;
mod step3p5;
mod tagged;
mod tool_code;
mod ui_tars;
mod values;
mod xlam;

pub use apertus::FORMAT as APERTUS;
pub use apriel::FORMAT as APRIEL;
pub use arguments::{Arguments, End};
pub use calling_tool::FORMAT as CALLING_TOOL;
pub use cohere::FORMAT as COHERE;
pub use command_r::FORMAT as COMMAND_R;
pub use deepseek::FORMAT as DEEPSEEK;
pub use deepseek_v4::FORMAT as DEEPSEEK_V4;
pub use deepseek_v31::FORMAT as DEEPSEEK_V31;
pub use deepseek_v32::FORMAT as DEEPSEEK_V32;
pub use firefunction::FORMAT as FIREFUNCTION;
pub use function_gemma::FORMAT as FUNCTION_GEMMA;
pub use function_tag::FORMAT as FUNCTION_TAG;
pub use functionary::FORMAT as FUNCTIONARY;
pub use functionary_llama3::FORMAT as FUNCTIONARY_LLAMA3;
pub use functionary_v2::FORMAT as FUNCTIONARY_V2;
pub use gemma4::FORMAT as GEMMA4;
pub use gigachat::FORMAT as GIGACHAT;
pub use gigachat_v3::FORMAT as GIGACHAT_V3;
pub use glm::FORMAT as GLM;
pub use glm47::FORMAT as GLM47;
pub use granite::FORMAT as GRANITE;
pub use harmony::FORMAT as HARMONY;
pub use hermes::FORMAT as HERMES;
pub use hunyuan::FORMAT as HUNYUAN;
pub use inkling::FORMAT as INKLING;
pub use k2_horizon::FORMAT as K2_HORIZON;
pub use kimi::FORMAT as KIMI;
pub use kimi_k3::FORMAT as KIMI_K3;
pub use laguna::FORMAT as LAGUNA;
pub use lfm2::FORMAT as LFM2;
pub use ling::FORMAT as LING;
pub use llama::FORMAT as LLAMA;
pub use longcat::FORMAT as LONGCAT;
pub use minicpm::FORMAT as MINICPM;
pub use minimax::FORMAT as MINIMAX;
pub use minimax_m1::FORMAT as MINIMAX_M1;
pub use minimax_m3::FORMAT as MINIMAX_M3;
pub use mistral::FORMAT as MISTRAL;
pub use mistral_args::FORMAT as MISTRAL_ARGS;
pub use mistral_ids::FORMAT as MISTRAL_IDS;
pub use muse::FORMAT as MUSE;
pub use nemotron::FORMAT as NEMOTRON;
pub use nemotron_nano::FORMAT as NEMOTRON_NANO;
use nesting::Nesting;
use notation::Notation;
pub use olmo3::FORMAT as OLMO3;
pub use pythonic::FORMAT as PYTHONIC;
pub use qwen_xml::FORMAT as QWEN_XML;
pub use reka::FORMAT as REKA;
pub use rules::Rules;
pub use seed_oss::FORMAT as SEED_OSS;
pub use solar::FORMAT as SOLAR;
use spelling::Spelling;
pub use step3p5::FORMAT as STEP3P5;
pub use tool_code::FORMAT as TOOL_CODE;
pub use ui_tars::FORMAT as UI_TARS;
pub use xlam::FORMAT as XLAM;

/// One family's way to write calls.
pub struct Format {
    /// As flags and dialects call it.
    pub name: &'static str,
    /// The marks that begin a call, or a list of them.
    pub opens: &'static [&'static str],
    /// Characters that begin a call without any mark, at the beginning of an answer only.
    pub bare: &'static [char],
    /// Reads what follows a mark of `opens`, or, from its first character on, a bare call.
    pub parse: fn(Region) -> Parsing,
    /// What stands around all calls of one turn.
    pub envelope: Envelope,
    /// The text of one call, number `index` of its turn, without the envelope.
    pub render: fn(call: &ToolCall, index: usize) -> String,
    /// The same as an expression of llguidance's Lark, for any arguments that the tool's schema allows.
    pub grammar: fn(rules: &mut Rules, tool: &Tool) -> String,
}

/// Text around and between the calls of a turn, as the family's template writes it.
pub struct Envelope {
    pub open: &'static str,
    pub between: &'static str,
    pub close: &'static str,
}

/// All formats there are.
pub const FORMATS: &[&Format] = &[
    &HERMES,
    &QWEN_XML,
    &PYTHONIC,
    &DEEPSEEK_V32,
    &DEEPSEEK_V4,
    &GEMMA4,
    &GLM,
    &GLM47,
    &HUNYUAN,
    &INKLING,
    &K2_HORIZON,
    &KIMI_K3,
    &LAGUNA,
    &LFM2,
    &LING,
    &LONGCAT,
    &MINICPM,
    &MINIMAX,
    &MINIMAX_M3,
    &MUSE,
    &NEMOTRON,
    &OLMO3,
    &REKA,
    &SEED_OSS,
    &STEP3P5,
    &TOOL_CODE,
    &UI_TARS,
    &APERTUS,
    &APRIEL,
    &CALLING_TOOL,
    &COHERE,
    &COMMAND_R,
    &DEEPSEEK,
    &DEEPSEEK_V31,
    &FIREFUNCTION,
    &FUNCTION_GEMMA,
    &FUNCTION_TAG,
    &FUNCTIONARY,
    &FUNCTIONARY_LLAMA3,
    &FUNCTIONARY_V2,
    &GIGACHAT,
    &GIGACHAT_V3,
    &GRANITE,
    &HARMONY,
    &KIMI,
    &LLAMA,
    &MINIMAX_M1,
    &MISTRAL,
    &MISTRAL_ARGS,
    &MISTRAL_IDS,
    &NEMOTRON_NANO,
    &SOLAR,
    &XLAM,
];

/// The text at hand is no call. What was read of it since the last call is text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotACall;

impl From<json::NotJson> for NotACall {
    fn from(_: json::NotJson) -> NotACall {
        NotACall
    }
}

/// A reader of calls. It begins calls in its region, and ends when what belongs to it has been read.
pub type Parsing = Pin<Box<dyn Future<Output = Result<(), NotACall>> + Send>>;

/// Tools that families take code to be meant for.
const INTERPRETERS: &[&str] = &["code_interpreter", "python", "ipython"];

/// Bytes of a name.
const NAME: usize = 256;

/// Whether a tool's name may have this character where the format does not say where the name ends.
fn in_name(char: char) -> bool {
    char.is_alphanumeric() || "_.-/:".contains(char)
}

/// Names of undeclared tools that are told of one answer.
const REJECTED: usize = 8;

/// A place where calls may stand.
#[derive(Clone)]
pub struct Region {
    pub input: Input,
    /// The mark that opened it: an index into the format's `opens`; 0 where a bare call begins.
    pub opened_by: usize,
    /// Whether a mark opened it. A bare call may well be other text.
    marked: bool,
    calls: Calls,
}

impl Region {
    /// Behind the mark of this index.
    pub(in crate::chat) fn marked(input: Input, opened_by: usize, calls: Calls) -> Region {
        Region { input, opened_by, marked: true, calls }
    }

    /// Where a call may begin without any mark.
    pub(in crate::chat) fn bare(input: Input, calls: Calls) -> Region {
        Region { input, opened_by: 0, marked: false, calls }
    }

    /// A call of this tool begins. From here on nothing of it can become text again; so the name must be certain.
    ///
    /// # Errors
    /// No tool of this name was declared, or no more calls are allowed.
    pub fn call(&self, name: &str) -> Result<Arguments, NotACall> {
        self.call_with_id(name, None)
    }

    /// [`Region::call`] with the id that the model gave it.
    pub fn call_with_id(&self, name: &str, id: Option<String>) -> Result<Arguments, NotACall> {
        if !self.may_call(name) {
            return Err(NotACall);
        }
        let (name, shape) = self.calls.declared(name).ok_or(NotACall)?;
        self.calls.output.begin_call(&name, id);
        *self.calls.open.lock().unwrap_or_else(PoisonError::into_inner) = Some(Nesting::default());
        self.input.unpin();
        Ok(Arguments::new(self.clone(), shape))
    }

    /// Whether a call of this tool may begin, which is what the answer says. One that may not is told of.
    pub fn may_call(&self, name: &str) -> bool {
        let declared = self.declares(name);
        if !declared && self.marked {
            self.calls.reject(name);
        }
        declared
    }

    /// Whether this tool was declared.
    pub fn declares(&self, name: &str) -> bool {
        self.calls.declared(name).is_some()
    }

    /// Takes the mark that closes calls, if it is next. Models leave it out; and the end of an answer that was cut may
    /// be its beginning.
    pub async fn close(&self, mark: &str) {
        self.input.pin();
        self.input.skip_space().await;
        if self.input.eat(mark).await {
            return;
        }
        if self.input.met_end() && mark.starts_with(&self.input.pending()) {
            self.input.discard();
        } else {
            self.input.rewind();
        }
    }

    /// Code for an interpreter, up to the first of these marks, where such a tool is declared: all of it is the argument
    /// `code`, or the tool's first. Takes the mark and returns its index.
    pub async fn code(&self, marks: &[&str]) -> Result<usize, NotACall> {
        let name = INTERPRETERS.iter().find(|name| self.declares(name)).ok_or(NotACall)?;
        self.code_for(name, marks).await
    }

    /// [`Region::code`] for the tool of this name.
    pub async fn code_for(&self, name: &str, marks: &[&str]) -> Result<usize, NotACall> {
        let mut arguments = self.call(name)?;
        let members = arguments.shape().members();
        let code = members.iter().find(|name| *name == "code").or(members.first());
        let code = code.map_or("code", String::as_str).to_owned();
        let mark = arguments.text(&code, End { trim: true, ..End::at(marks) }).await?;
        arguments.end();
        Ok(mark)
    }

    /// A call is complete; a failure from here on takes back only what follows.
    fn end_call(&self) {
        self.calls.output.end_call();
        *self.calls.open.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.input.pin();
    }
}

/// The tools of a request, and the calls of its answer.
#[derive(Clone)]
pub struct Calls {
    tools: Arc<Vec<(String, Shape)>>,
    pub(in crate::chat) output: Output,
    open: Arc<Mutex<Option<Nesting>>>,
    rejected: Arc<Mutex<Vec<String>>>,
    over: Arc<AtomicBool>,
}

impl Calls {
    pub fn new(tools: &[Tool], output: Output) -> Calls {
        let shape = |tool: &Tool| match &tool.parameters {
            Value::Object(_) => Shape::of(tool.parameters.clone()),
            _ => Shape::unknown(),
        };
        let tools = tools.iter().map(|tool| (tool.name.clone(), shape(tool))).collect();
        Calls { tools: Arc::new(tools), output, open: Arc::default(), rejected: Arc::default(), over: Arc::default() }
    }

    /// The undeclared tools that were called.
    pub fn rejected(&self) -> Vec<String> {
        self.rejected.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn reject(&self, name: &str) {
        let mut rejected = self.rejected.lock().unwrap_or_else(PoisonError::into_inner);
        if rejected.len() < REJECTED && !name.is_empty() && !rejected.iter().any(|own| own == name) {
            rejected.push(name.to_owned());
        }
    }

    /// Whether any tool was declared.
    pub fn any(&self) -> bool {
        !self.tools.is_empty()
    }

    /// No other call is looked for.
    pub(in crate::chat) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// Whether no other call is looked for.
    pub(in crate::chat) fn are_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Whether a call has begun and not ended.
    pub fn is_open(&self) -> bool {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// More of the open call's arguments.
    fn write(&self, piece: &str) {
        if let Some(nesting) = &mut *self.open.lock().unwrap_or_else(PoisonError::into_inner) {
            nesting.read(piece);
        }
        self.output.arguments(piece);
    }

    /// Ends a call that is broken off in the middle of a text that goes on: its JSON is closed behind what was good.
    pub(in crate::chat) fn close_broken(&self) {
        if let Some(nesting) = self.open.lock().unwrap_or_else(PoisonError::into_inner).take() {
            self.output.arguments(&nesting.closing());
            self.output.end_call();
        }
    }

    /// A tool by its name, also where the model put a namespace before it.
    fn declared(&self, name: &str) -> Option<(String, Shape)> {
        let find = |name: &str| self.tools.iter().find(|(own, _)| own == name).cloned();
        let bare = |prefix: &str| name.strip_prefix(prefix).and_then(find);
        find(name).or_else(|| bare("functions.")).or_else(|| bare("tools.")).or_else(|| bare("function."))
    }
}

#[cfg(test)]
mod tests;
