//! Formats of calls that several dialects read. A format that only its own family writes stands in the family's row.

use super::{
    Braces, Deepseek, Functions, Mistral, Object, ObjectId, Pairs, Python, PythonArguments, Spelling, Statements,
    Syntax, TagMessage, Tags, ToolFormat, Typed,
};

/// Hermes, Qwen 2.5 and 3, and many others: a JSON object between tags.
pub(super) static HERMES: ToolFormat =
    ToolFormat::new("hermes", &["<tool_call>"], Syntax::Object(HERMES_OBJECT)).within("", "\n", "");

/// The object, which others write in ways of their own.
pub(super) const HERMES_OBJECT: Object =
    Object { around: ["<tool_call>\n", "\n</tool_call>"], close: "</tool_call>", ..Object::PLAIN };

/// Qwen3-Coder and Qwen 3.5: tags for the function and each parameter; the outer tag is often left out.
pub(super) static QWEN_XML: ToolFormat =
    ToolFormat::new("qwen_xml", &["<tool_call>", "<function="], Syntax::Functions(QWEN_FUNCTIONS)).within("", "\n", "");

/// The tags, which others set apart in ways of their own.
pub(super) const QWEN_FUNCTIONS: Functions =
    Functions { all: ["<tool_call>", "</tool_call>"], newline: "\n", spelling: Spelling::Python };

/// Seed-OSS: Qwen's tags in one of its own, with nothing around a value.
pub(super) static SEED_OSS: ToolFormat = ToolFormat::new(
    "seed_oss",
    &["<seed:tool_call>", "<function="],
    Syntax::Functions(Functions {
        all: ["<seed:tool_call>", "</seed:tool_call>"],
        newline: "",
        spelling: Spelling::Repr,
    }),
)
.within("", "\n", "");

/// GLM 4.5 and 4.6: a line for each key and each value.
pub(super) static GLM: ToolFormat =
    ToolFormat::new("glm", &["<tool_call>"], Syntax::Pairs(&[GLM_PAIRS])).within("", "\n", "");

/// The pairs, which others write with tags and white space of their own.
pub(super) const GLM_PAIRS: Pairs = Pairs {
    call: ["<tool_call>", "</tool_call>"],
    head: "\n",
    key: ["<arg_key>", "</arg_key>"],
    gap: "\n",
    kind: None,
    value: ["<arg_value>", "</arg_value>"],
    tail: "\n",
    all: None,
};

/// GLM 4.7 and 5, Laguna S and Spark 2.5: GLM's tags without white space.
pub(super) static GLM47: ToolFormat =
    ToolFormat::new("glm47", &["<tool_call>"], Syntax::Pairs(&[Pairs { head: "", gap: "", tail: "", ..GLM_PAIRS }]));

/// Hunyuan 3: GLM's tags with a suffix, which some tokenizers leave out, and one tag around all calls.
pub(super) static HUNYUAN: ToolFormat = ToolFormat::new(
    "hunyuan",
    &["<tool_calls:opensource>", "<tool_call:opensource>", "<tool_calls>", "<tool_call>"],
    Syntax::Pairs(&[
        Pairs {
            call: ["<tool_call:opensource>", "</tool_call:opensource>"],
            head: "<tool_sep:opensource>\n",
            key: ["<arg_key:opensource>", "</arg_key:opensource>"],
            value: ["<arg_value:opensource>", "</arg_value:opensource>"],
            all: Some(["<tool_calls:opensource>", "</tool_calls:opensource>"]),
            ..GLM_PAIRS
        },
        Pairs { head: "<tool_sep>\n", all: Some(["<tool_calls>", "</tool_calls>"]), ..GLM_PAIRS },
    ]),
)
.within("<tool_calls:opensource>\n", "\n", "\n</tool_calls:opensource>");

/// K2 Horizon of IFM: GLM's pairs, with or without the value's type, or a JSON object, in tags of its own.
pub(super) static K2_HORIZON: ToolFormat = ToolFormat::new(
    "k2_horizon",
    &["<ifm|tool_calls>", "<ifm|tool_call>"],
    Syntax::Pairs(&[Pairs {
        call: ["<ifm|tool_call>", "</ifm|tool_call>"],
        key: ["<ifm|arg_key>", "</ifm|arg_key>"],
        kind: Some(["<ifm|arg_type>", "</ifm|arg_type>"]),
        value: ["<ifm|arg_value>", "</ifm|arg_value>"],
        all: Some(["<ifm|tool_calls>", "</ifm|tool_calls>"]),
        ..GLM_PAIRS
    }]),
)
.within("<ifm|tool_calls>\n", "\n", "\n</ifm|tool_calls>");

/// MiniMax M2: a tag with the name for each call and each parameter.
pub(super) static MINIMAX: ToolFormat = ToolFormat::new(
    "minimax",
    &["<minimax:tool_call>", "<invoke"],
    Syntax::Tags(MINIMAX_TAGS),
)
.within("<minimax:tool_call>\n", "\n", "\n</minimax:tool_call>");

const MINIMAX_TAGS: Tags = Tags {
    call: ["<invoke", "</invoke>"],
    head: "\n",
    empty: "",
    parameter: ["<parameter", "</parameter>"],
    tail: "\n",
    typed: Typed::No,
    spelling: Spelling::Json,
    verbatim: None,
    all: &[["<minimax:tool_call>", "</minimax:tool_call>"]],
    message: None,
};

/// DeepSeek V3.2: tags of its own, and each parameter says whether it is a string.
pub(super) static DEEPSEEK_V32: ToolFormat = ToolFormat::new("deepseek_v32", DSML_OPENS, Syntax::Tags(DSML_TAGS))
    .within("<｜DSML｜function_calls>\n", "\n", "\n</｜DSML｜function_calls>");

/// DeepSeek V4: V3.2's tags with another one around all calls.
pub(super) static DEEPSEEK_V4: ToolFormat = ToolFormat::new(
    "deepseek_v4",
    DSML_OPENS,
    Syntax::Tags(Tags { empty: "\n", ..DSML_TAGS }),
)
.within("<｜DSML｜tool_calls>\n", "\n", "\n</｜DSML｜tool_calls>");

const DSML_OPENS: &[&str] = &["<｜DSML｜function_calls>", "<｜DSML｜tool_calls>", "<｜DSML｜invoke"];

const DSML_TAGS: Tags = Tags {
    call: ["<｜DSML｜invoke", "</｜DSML｜invoke>"],
    parameter: ["<｜DSML｜parameter", "</｜DSML｜parameter>"],
    typed: Typed::String,
    all: &[
        ["<｜DSML｜function_calls>", "</｜DSML｜function_calls>"],
        ["<｜DSML｜tool_calls>", "</｜DSML｜tool_calls>"],
    ],
    ..MINIMAX_TAGS
};

/// MiniCPM 5: a tag with the name, and CDATA around strings that XML could not hold.
pub(super) static MINICPM: ToolFormat = ToolFormat::new(
    "minicpm",
    &["<function"],
    Syntax::Tags(Tags {
        call: ["<function", "</function>"],
        head: "",
        parameter: ["<param", "</param>"],
        tail: "",
        spelling: Spelling::Repr,
        verbatim: Some(["<![CDATA[", "]]>"]),
        all: &[],
        ..MINIMAX_TAGS
    }),
)
.within("", "\n", "");

/// Muse: a message to the tool, with the call in ATEM's tags.
pub(super) static MUSE: ToolFormat = ToolFormat::new(
    "muse",
    &["<atem:function_calls>", "<atem:invoke"],
    Syntax::Tags(Tags {
        call: ["<atem:invoke", "</atem:invoke>"],
        parameter: ["<atem:parameter", "</atem:parameter>"],
        all: &[["<atem:function_calls>", "</atem:function_calls>"]],
        message: Some(TagMessage { role: "<|start|>assistant", header: [" to=", "<|message|>"] }),
        ..MINIMAX_TAGS
    }),
)
.within("", "<|eom|><|start|>assistant", "");

/// MiniMax M3: every tag behind a special token, and a tag for each member and item however deep.
pub(super) static MINIMAX_M3: ToolFormat = ToolFormat::new(
    "minimax_m3",
    &["]<]minimax[>[<tool_call>", "]<]minimax[>[<invoke"],
    Syntax::Elements("]<]minimax[>["),
)
.within("]<]minimax[>[<tool_call>\n", "\n", "\n]<]minimax[>[</tool_call>");

/// Kimi K3: XML of three special tokens, with each argument's type.
pub(super) static KIMI_K3: ToolFormat = ToolFormat::new("kimi_k3", &["<|open|>tools<|sep|>"], Syntax::TypedXml).within(
    "<|open|>tools<|sep|>",
    "",
    "<|close|>tools<|sep|>",
);

/// Gemma 4: a notation of its own, with a special token for the quotes around strings.
pub(super) static GEMMA4: ToolFormat = ToolFormat::new(
    "gemma4",
    &["<|tool_call>", "<|tool_call|>"],
    Syntax::Braces(Braces { call: ["<|tool_call>", "<tool_call|>"], quote: "<|\"|>" }),
);

/// Gemma 3: Python in a block of code, or assigned to a variable of that name.
pub(super) static TOOL_CODE: ToolFormat = ToolFormat::new(
    "tool_code",
    &["```tool_code", "tool_code ="],
    Syntax::Statements(Statements::Code { fences: ["```tool_code", "```"], printed: "print(tool_code)" }),
)
.within("```tool_code\n", "\n", "\n```");

/// OLMo 3: a line of Python for each call, its arguments as JSON.
pub(super) static OLMO3: ToolFormat = ToolFormat::new(
    "olmo3",
    &["<function_calls>"],
    Syntax::Statements(Statements::Calls("</function_calls>")),
)
.within("<function_calls>", "\n", "</function_calls>");

/// LFM 2: a list of Python calls between special tokens.
pub(super) static LFM2: ToolFormat = ToolFormat::new(
    "lfm2",
    &["<|tool_call_start|>"],
    Syntax::Python(Python { close: "<|tool_call_end|>", arguments: PythonArguments::ReprAndJson }),
)
.within("<|tool_call_start|>[", ", ", "]<|tool_call_end|>");

/// Llama 4: a list of Python expressions.
pub(super) static PYTHONIC: ToolFormat = ToolFormat::new(
    "pythonic",
    &["<|python_start|>"],
    Syntax::Python(Python { close: "<|python_end|>", arguments: PythonArguments::Words }),
)
.bare(&['['])
.within("[", ", ", "]");

/// What models write that imitate how other programs put their calls into a conversation's past. It is read only.
pub(super) static CALLING_TOOL: ToolFormat =
    ToolFormat::new("calling_tool", &["[Calling tool:", "[Calling tool=", "[Calling tool "], Syntax::CallingTool)
        .within("", "\n", "");

/// Llama 3: a JSON object at the answer's beginning or behind a special token; behind that token also a call of a
/// built-in tool, or code for the interpreter.
pub(super) static LLAMA: ToolFormat =
    ToolFormat::new("llama", &["<|python_tag|>"], Syntax::ObjectOrCode(&["<|eom_id|>", "<|eot_id|>"]))
        .bare(&['{', '['])
        .within("", "; ", "");

/// Functionary 3.1, and Llama 3 where its prompt asks for it: JSON in a tag that names the function.
pub(super) static FUNCTION_TAG: ToolFormat = ToolFormat::new("function_tag", &["<function="], Syntax::FunctionTag);

/// DeepSeek V2.5, V3 and R1: the name and a block of JSON between special tokens.
pub(super) static DEEPSEEK: ToolFormat = ToolFormat::new("deepseek", DEEPSEEK_OPENS, Syntax::Deepseek(DEEPSEEK_MARKS))
    .within("<｜tool▁calls▁begin｜>", "\n", "<｜tool▁calls▁end｜>");

/// DeepSeek V3.1 and V3.2-Exp: neither the word `function` nor a block.
pub(super) static DEEPSEEK_V31: ToolFormat =
    ToolFormat::new("deepseek_v31", DEEPSEEK_OPENS, Syntax::Deepseek(Deepseek { fenced: false, ..DEEPSEEK_MARKS }))
        .within("<｜tool▁calls▁begin｜>", "", "<｜tool▁calls▁end｜>");

const DEEPSEEK_OPENS: &[&str] = &[
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁call▁begin｜>",
    "<｜tool_calls_begin｜>",
    "<｜tool calls begin｜>",
    "<｜tool\\_calls\\_begin｜>",
    "<｜tool▁calls｜>",
];

const DEEPSEEK_MARKS: Deepseek = Deepseek {
    call: &["<｜tool▁call▁begin｜>", "<｜tool_call_begin｜>", "<｜tool call begin｜>"],
    separator: &["<｜tool▁sep｜>", "<｜tool_sep｜>", "<｜tool sep｜>"],
    end: &["<｜tool▁call▁end｜>", "<｜tool_call_end｜>", "<｜tool call end｜>"],
    close: &["<｜tool▁calls▁end｜>", "<｜tool_calls_end｜>", "<｜tool calls end｜>"],
    fenced: true,
};

/// Kimi K2: an id that names the tool, and JSON, between special tokens. The second mark is a mistake that it makes.
pub(super) static KIMI: ToolFormat = ToolFormat::new(
    "kimi",
    &["<|tool_calls_section_begin|>", "<|tool_call_section_begin|>", "<|tool_call_begin|>"],
    Syntax::Kimi,
)
.within("<|tool_calls_section_begin|>", "", "<|tool_calls_section_end|>");

/// Solar Open: the call's id, the name and JSON between special tokens.
pub(super) static SOLAR: ToolFormat = ToolFormat::new(
    "solar",
    &["<|tool_calls|>", "<|tool_call:begin|>"],
    Syntax::Solar,
)
.within("<|tool_calls|>", "", "");

/// Mistral up to 2024: a list of JSON objects behind a special token.
pub(super) static MISTRAL: ToolFormat =
    ToolFormat::new("mistral", &["[TOOL_CALLS]"], Syntax::Mistral(Mistral::List)).within("[TOOL_CALLS][", ", ", "]");

/// Mistral since 2025: the name and its arguments, each behind a special token.
pub(super) static MISTRAL_ARGS: ToolFormat =
    ToolFormat::new("mistral_args", &["[TOOL_CALLS]"], Syntax::Mistral(Mistral::Arguments));

/// Cohere Command R7B, Command A and North: a JSON list between special tokens.
pub(super) static COHERE: ToolFormat = ToolFormat::new(
    "cohere",
    &["<|START_ACTION|>"],
    Syntax::Object(Object {
        around: ["    ", ""],
        close: "<|END_ACTION|>",
        keys: ["tool_name", "parameters"],
        id: ObjectId::Number,
        ..Object::PLAIN
    }),
)
.within("<|START_ACTION|>[\n", ",\n", "\n]<|END_ACTION|>");

/// Apertus: a list of objects whose only key is the tool's name, between special tokens.
pub(super) static APERTUS: ToolFormat = ToolFormat::new(
    "apertus",
    &["<|tools_prefix|>"],
    Syntax::Keyed("<|tools_suffix|>"),
)
.within("<|tools_prefix|>[", ", ", "]<|tools_suffix|>");

/// GigaChat 3.1: a JSON object behind a special token. GigaChat 3 writes it as a message of its own, which is read too.
pub(super) static GIGACHAT: ToolFormat = ToolFormat::new(
    "gigachat",
    &["<|function_call|>", "function call<|role_sep|>"],
    Syntax::Object(Object { around: ["<|function_call|>", ""], close: "<|message_sep|>", ..Object::PLAIN }),
);

/// Nemotron Nano 2: a JSON list in a tag.
pub(super) static NEMOTRON_NANO: ToolFormat =
    ToolFormat::new("nemotron_nano", &["<TOOLCALL>"], Syntax::Object(Object { close: "</TOOLCALL>", ..Object::PLAIN }))
        .within("<TOOLCALL>[", ", ", "]</TOOLCALL>");

/// Apriel: a JSON list in a tag.
pub(super) static APRIEL: ToolFormat = ToolFormat::new(
    "apriel",
    &["<tool_calls>"],
    Syntax::Object(Object { close: "</tool_calls>", id: ObjectId::Last, ..Object::PLAIN }),
)
.within("<tool_calls>[", ", ", "]</tool_calls>");

/// Granite 3: a JSON list behind a special token or a tag.
pub(super) static GRANITE: ToolFormat = ToolFormat::new(
    "granite",
    &["<|tool_call|>", "<tool_call>"],
    Syntax::Object(Object { close: "</tool_call>", ..Object::PLAIN }),
)
.within("<|tool_call|>[", ", ", "]");
