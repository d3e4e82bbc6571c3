//! Templates in the shapes that families' templates have, each with what others do not do.

use std::{fs, path::Path};

/// Those below, and the public ones where they are there.
pub fn all() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/chat-templates");
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    let public = paths.iter().map(|path| fs::read_to_string(path).expect("a template"));
    SHAPES.iter().map(|shape| (*shape).to_owned()).chain(public).collect()
}

const SHAPES: &[&str] = &[
    // Everything of a message at once.
    "{% for m in messages %}<|im_start|>{{ m.role }} {{ m | tojson }}{{ m.content | trim }}<|im_end|>{% endfor %}",
    // Turns between control tokens, tools as JSON before them, thoughts cut out of what was said.
    "{%- if tools %}<|im_start|>system\n{% for tool in tools %}{{ tool | tojson(indent=2) }}\n{% endfor %}<|im_end|>\n\
     {%- endif %}{%- for m in messages %}{%- set content = m.content %}\
     {%- if m.role == 'assistant' and '</think>' in content %}\
     {%- set content = content.split('</think>')[-1].lstrip('\\n') %}{%- endif %}\
     <|im_start|>{{ m.role }}\n{{ content }}\
     {%- for call in m.tool_calls or [] %}<tool_call>{{ call.function.name }}{{ call.function.arguments | tojson }}\
     </tool_call>{%- endfor %}<|im_end|>\n{%- endfor %}\
     {%- if add_generation_prompt %}<|im_start|>assistant\n{% if enable_thinking is false %}<think></think>{% endif %}\
     {%- endif %}",
    // Only turns that alternate, the system's words in the first.
    "{{ bos_token }}{% if messages[0].role == 'system' %}{% set system = messages[0].content %}\
     {% set messages = messages[1:] %}{% endif %}{% for m in messages %}\
     {% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('turns alternate') }}{% endif %}\
     {% if m.role == 'user' %}[INST] {{ system ~ '\\n' if loop.first and system is defined }}{{ m['content'] }} [/INST]\
     {% else %}{{ m['content'] | trim }}{{ eos_token }}{% endif %}{% endfor %}",
    // A macro that walks through schemas, names beside texts without anything between.
    "{% macro walk(value) %}{% if value is mapping %}{% for key, item in value.items() | sort %}{{ key }}:{{ walk(item) }}\
     {% endfor %}{% elif value is iterable and value is not string %}{% for item in value %}{{ walk(item) }}{% endfor %}\
     {% else %}{{ value }}{% endif %}{% endmacro %}{% for tool in tools or [] %}{{ walk(tool.function) }}{% endfor %}\
     {% for m in messages %}{{ m.name }}{{ m.content }}{{ m.reasoning_content }}{% endfor %}",
    // Reads each text's start, end and lines.
    "{% for m in messages %}{% if m.content.startswith('<tool_response>') and m.content.endswith('</tool_response>') %}\
     R{{ m.content }}{% elif m.content %}{% for line in m.content.splitlines() %}{{ line.strip() }}\n{% endfor %}\
     {{ m.content[:3] }}|{{ m.content[-3:] }}{{ m.content | length }}{% else %}{{ '%s' % m.role | upper }}{% endif %}\
     {% endfor %}{% set ns = namespace(last=none) %}{% for m in messages[::-1] %}{% if not ns.last %}\
     {% set ns.last = m.content %}{% endif %}{% endfor %}{{ ns.last }}",
    // Texts side by side, one of which it looks at.
    "{% for m in messages %}{{ m.name | trim }}{{ m.content | trim }}{{ m.reasoning_content }}\
     {% if m.content | length > 4 %}!{% endif %}{{ m.tool_call_id }}{% endfor %}",
    // Joins, replaces, quotes.
    "{{ messages | map(attribute='content') | join('') }}{% for m in messages %}{{ m.content | replace('\\n', ' ') }}\
     {{ m.content | tojson(ensure_ascii=true) }}{{ [m.content] }}{{ m.content | indent(4) }}{{ m.content | e }}{% endfor %}",
];
