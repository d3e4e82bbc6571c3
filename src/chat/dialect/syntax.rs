//! How calls of tools are written, as data: the marks around them, and which syntax stands between the marks.
//! `chat::output::tools` has one file for each [`Syntax`], which reads it, writes it and makes its grammar.

/// One family's way to write calls.
#[derive(Debug)]
pub struct ToolFormat {
    /// As flags call it.
    pub name: &'static str,
    /// The marks that begin a call, or a list of them.
    pub opens: &'static [&'static str],
    /// Characters that begin a call without any mark, at the beginning of an answer only.
    pub bare: &'static [char],
    /// What stands behind such a mark or character.
    pub syntax: Syntax,
    /// What stands around all calls of one turn.
    pub envelope: Envelope,
}

/// Text around and between the calls of a turn, as the family's template writes it.
#[derive(Debug, Clone, Copy)]
pub struct Envelope {
    /// Before the first call.
    pub open: &'static str,
    /// Between two calls.
    pub between: &'static str,
    /// Behind the last call.
    pub close: &'static str,
}

impl ToolFormat {
    /// A format whose calls begin with one of these marks and follow each other directly.
    pub(super) const fn new(name: &'static str, opens: &'static [&'static str], syntax: Syntax) -> ToolFormat {
        let envelope = Envelope { open: "", between: "", close: "" };
        ToolFormat { name, opens, bare: &[], syntax, envelope }
    }

    /// The same with this before the first call, between two and behind the last.
    pub(super) const fn within(self, open: &'static str, between: &'static str, close: &'static str) -> ToolFormat {
        ToolFormat { envelope: Envelope { open, between, close }, ..self }
    }

    /// The same whose calls may begin an answer without a mark, with one of these characters.
    pub(super) const fn bare(self, bare: &'static [char]) -> ToolFormat {
        ToolFormat { bare, ..self }
    }
}

/// The syntaxes of calls. Each is one file of `chat::output::tools`.
#[derive(Debug)]
pub enum Syntax {
    /// `{"name": "f", "arguments": {"x": 1}}`, or a list of such objects.
    Object(Object),
    /// `f<mark>{"name": "f", "args": {"x": 1}}`: a message with one object.
    ObjectMessage(ObjectMessage),
    /// `[{"f": {"x": 1}}]`, and the mark that closes it.
    Keyed(&'static str),
    /// `{"name": "f", "parameters": {"x": 1}}`, `f.call(x=1)`, or code, which ends at one of these marks.
    ObjectOrCode(&'static [&'static str]),
    /// Mistral's three generations, all of which are read; the one that is written.
    Mistral(Mistral),
    /// `<function=f>{"x": 1}</function>`.
    FunctionTag,
    /// `f<separator>{"x": 1}` between DeepSeek's marks.
    Deepseek(Deepseek),
    /// `functions.f:0<mark>{"x": 1}` between Kimi K2's marks.
    Kimi,
    /// An id, a name and JSON, each behind one of Solar's marks.
    Solar,
    /// A message of the harmony format to a tool.
    Harmony,
    /// `f\n{"x": 1}`: a message whose recipient is the tool.
    Recipient(Recipient),
    /// `f<key>x</key><value>1</value>`; the first of these is written, all are read.
    Pairs(&'static [Pairs]),
    /// `<invoke name="f"><parameter name="x">1</parameter></invoke>`.
    Tags(Tags),
    /// `<function=f><parameter=x>1</parameter></function>`.
    Functions(Functions),
    /// `call:f{x:1}`.
    Braces(Braces),
    /// `<invoke name="f"><x>1</x></invoke>`: a tag for each member and item, each behind this token.
    Elements(&'static str),
    /// `call tool="f"`, and arguments with their types, in XML of three special tokens.
    TypedXml,
    /// `[f(x=1)]`: a list of Python's calls.
    Python(Python),
    /// `f(x=1)`: a call of Python's on each line.
    Statements(Statements),
    /// `click(start_box='(1,2)')`: actions on a screen.
    Actions,
    /// `[Calling tool: f({"x": 1})]`.
    CallingTool,
}

/// JSON objects with a name and arguments, whatever stands around them and whatever they call the two.
#[derive(Debug)]
pub struct Object {
    /// Written before each object, and behind it.
    pub around: [&'static str; 2],
    /// What must stand between the mark and the object; a bracket here is a part of the list.
    pub lead: &'static str,
    /// What closes the calls, which models may leave out; `""` where nothing does.
    pub close: &'static str,
    /// What the name and the arguments are called where they are written; more words are read.
    pub keys: [&'static str; 2],
    /// Where the call's id is written.
    pub id: ObjectId,
    /// How the object is laid out.
    pub layout: Layout,
}

impl Object {
    /// An object without anything around it.
    pub const PLAIN: Object = Object {
        around: ["", ""],
        lead: "",
        close: "",
        keys: ["name", "arguments"],
        id: ObjectId::None,
        layout: Layout::Line,
    };
}

/// Where an object has its call's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectId {
    /// Nowhere.
    None,
    /// `"id"`, behind the arguments.
    Last,
    /// `"tool_call_id"`, before the name: the call's number in its turn.
    Number,
}

/// How an object is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// On a line.
    Line,
    /// On a line, in ASCII.
    Ascii,
    /// On lines that are indented.
    Indented,
}

/// A message whose header has the tool's name.
#[derive(Debug)]
pub struct ObjectMessage {
    /// What begins a message, which the prompt's end or a call before this one has written already.
    pub message: &'static str,
    /// Between the name and the object.
    pub mark: &'static str,
    /// What the arguments are called.
    pub arguments: &'static str,
}

/// What a generation of Mistral's models writes behind its mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mistral {
    /// `[{"name": "f", "arguments": {"x": 1}, "id": "abcdefghi"}]`.
    List,
    /// `f[ARGS]{"x": 1}`.
    Arguments,
    /// `f[CALL_ID]abcdefghi[ARGS]{"x": 1}`.
    Ids,
}

/// DeepSeek's marks: as the models spell them, which is what is written, then as models distilled from them do.
#[derive(Debug)]
pub struct Deepseek {
    /// Before a call.
    pub call: &'static [&'static str],
    /// Between `function` and the name, or between the name and JSON.
    pub separator: &'static [&'static str],
    /// Behind a call.
    pub end: &'static [&'static str],
    /// Behind all calls.
    pub close: &'static [&'static str],
    /// Whether the word `function` and a block of code are written.
    pub fenced: bool,
}

/// Messages to tools as Functionary writes them.
#[derive(Debug)]
pub struct Recipient {
    /// What begins a message; the first is written.
    pub opens: &'static [&'static str],
    /// Between the recipient's name and JSON.
    pub begin: &'static str,
    /// What ends a message to an interpreter.
    pub ends: &'static [&'static str],
    /// Whether the prompt has written what begins the first message; before another it stands between the calls.
    pub begun: bool,
}

/// A name, and pairs of tags around keys and values, with the white space that the family's template sets around them.
#[derive(Debug)]
pub struct Pairs {
    /// Around a call.
    pub call: [&'static str; 2],
    /// After the name.
    pub head: &'static str,
    /// Around a key.
    pub key: [&'static str; 2],
    /// Between key and value.
    pub gap: &'static str,
    /// Around the value's type, which some write between the two.
    pub kind: Option<[&'static str; 2]>,
    /// Around a value.
    pub value: [&'static str; 2],
    /// After a value.
    pub tail: &'static str,
    /// Around all calls of a turn; they may be missing.
    pub all: Option<[&'static str; 2]>,
}

/// A tag with the name as an attribute, and a tag inside for each parameter.
#[derive(Debug)]
pub struct Tags {
    /// `<invoke` and `</invoke>`.
    pub call: [&'static str; 2],
    /// After the call's tag.
    pub head: &'static str,
    /// Before the call's end where there are no parameters.
    pub empty: &'static str,
    /// `<parameter` and `</parameter>`.
    pub parameter: [&'static str; 2],
    /// After a parameter.
    pub tail: &'static str,
    /// How a parameter says of what type its value is.
    pub typed: Typed,
    /// How values are written that are no strings.
    pub spelling: Spelling,
    /// Values between these are as they stand there, whatever is in them.
    pub verbatim: Option<[&'static str; 2]>,
    /// Tags around all calls of a turn; more than one where families differ.
    pub all: &'static [[&'static str; 2]],
    /// Calls are messages to the tool, each with a header and the first tags around all calls.
    pub message: Option<TagMessage>,
}

/// A message to a tool, as Muse writes it.
#[derive(Debug)]
pub struct TagMessage {
    /// What begins a message, which the prompt's end has written before the first.
    pub role: &'static str,
    /// Before the tool's name, and behind it.
    pub header: [&'static str; 2],
}

/// How a parameter says of what type its value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Typed {
    /// Not at all.
    No,
    /// By ` string="true"` or ` string="false"`.
    String,
}

/// How formats that set no quotes around values write those that are no strings. Strings stand as they are in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spelling {
    /// `tojson`.
    Json,
    /// `tojson` for objects and arrays, Python's `str` for the rest: `True`, `None`.
    Python,
    /// Python's `str` for everything.
    Repr,
}

/// A tag that names the function, and one that names each parameter.
#[derive(Debug)]
pub struct Functions {
    /// Around a call; models leave them out.
    pub all: [&'static str; 2],
    /// Around a value.
    pub newline: &'static str,
    /// How values are written that are no strings.
    pub spelling: Spelling,
}

/// A name and members in braces, with a token of its own for the quotes around strings.
#[derive(Debug)]
pub struct Braces {
    /// Around a call, before the word `call:` and behind the brace.
    pub call: [&'static str; 2],
    /// Around strings.
    pub quote: &'static str,
}

/// A list of Python's calls.
#[derive(Debug)]
pub struct Python {
    /// What closes the list, which models may leave out.
    pub close: &'static str,
    /// How arguments are written.
    pub arguments: PythonArguments,
}

/// How arguments of Python's calls are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PythonArguments {
    /// As JSON, but for Python's words for true, false and null.
    Words,
    /// As JSON.
    Json,
    /// As Python's `repr`.
    Repr,
    /// As Python's `repr`, but for objects, which are JSON.
    ReprAndJson,
}

/// A call of Python's on each line.
#[derive(Debug)]
pub enum Statements {
    /// Nothing but calls, up to this mark; arguments are JSON.
    Calls(&'static str),
    /// Code in a block that these fences are around, or assigned to a variable and printed by this.
    Code {
        /// Around the block.
        fences: [&'static str; 2],
        /// Behind an assigned call.
        printed: &'static str,
    },
}
