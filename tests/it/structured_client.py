"""Calls and schemas against a running mettle, with the official openai client. Prints counts and, last, "all held".

structured_client.py URL CALLS SCHEMAS [FOLDER with MaskBench files]
"""
import json, pathlib, sys, time
from concurrent.futures import ThreadPoolExecutor
import jsonschema, openai

url, calls, schemas = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
client = openai.OpenAI(base_url=url + "/v1", api_key="unused", max_retries=0, timeout=600)
model = client.models.list().data[0].id
number, integer, boolean = ({"type": name} for name in ("number", "integer", "boolean"))
# A weak model writes digit after digit, or a key without end, where nothing stops it.
number, integer = ({**kind, "minimum": 0, "maximum": 100000} for kind in (number, integer))
choice = lambda *values: {"type": "string", "enum": list(values)}
many = lambda item: {"type": "array", "items": item, "maxItems": 4}
short = {"type": "string", "maxLength": 60}

def tool(name, what, required, **properties):
    schema = {"type": "object", "properties": properties, "required": required.split(), "additionalProperties": False}
    return {"type": "function", "function": {"name": name, "description": what, "parameters": schema}}

TOOLS = [
    tool("get_weather", "The weather of a city", "city", city=short, days=integer, unit=choice("celsius", "fahrenheit")),
    tool("search_web", "Search the web", "query", query=short, results={"type": "integer", "minimum": 1, "maximum": 50}),
    tool("send_email", "Send an email", "to subject body", to=many(short), subject=short, body=short),
    tool("create_event", "Put an event into the calendar", "title date", title=short,
         date={"type": "string", "pattern": "^20[0-9]{2}-(0[1-9]|1[0-2])-[0-2][0-9]$"}, minutes=integer),
    tool("read_file", "Read a file", "path", path=short, lines=many(integer)),
    tool("write_file", "Write a file", "path content", path=short, content=short, append=boolean),
    tool("run_command", "Run a shell command", "command", command=short, timeout=number),
    tool("convert_currency", "Convert money", "amount from to", amount=number,
         **{"from": choice("EUR", "USD", "JPY"), "to": choice("EUR", "USD", "JPY")}),
    tool("translate", "Translate a text", "text language", text=short, language=choice("de", "fr", "es")),
    tool("set_alarm", "Set an alarm", "hour minute", hour={"type": "integer", "minimum": 0, "maximum": 23},
         minute={"type": "integer", "minimum": 0, "maximum": 59}),
    tool("book_flight", "Book a flight", "origin destination", origin=short, destination=short,
         passengers=many({"type": "object", "properties": {"name": short, "child": boolean}, "required": ["name"],
                          "additionalProperties": False})),
    tool("calculate", "Calculate", "expression", expression=short),
    tool("get_stock", "The price of a share", "symbol", symbol={"type": "string", "pattern": "^[A-Z]{1,5}$"}),
    tool("list_files", "List a folder", "", folder=short, hidden=boolean),
    tool("play_music", "Play music", "title", title=short, artist=short, shuffle=boolean),
    tool("find_route", "Find a route", "start end", start=short, end=short, by=choice("car", "bike", "foot")),
    tool("rate_movie", "Rate a movie", "title stars", title=short, stars={"type": "integer", "minimum": 1, "maximum": 5}),
    tool("set_light", "Set a light", "room", room=short, on=boolean, colour=many(integer)),
    tool("get_time", "The time", "", zone=short),
    tool("note", "Keep a note", "text", text=short, tags=many(short),
         meta={"type": "object", "patternProperties": {"^[a-z]{1,12}$": integer}, "additionalProperties": False}),
]
NAMED = {t["function"]["name"]: t["function"]["parameters"] for t in TOOLS}
QUESTIONS = [
    "What is the weather in Paris for 3 days?", "Send Ann an email that I am late.", "How much are 20 dollars in euros?",
    "Wake me up at half past six.", "Write \"hello\" into notes.txt.", "Find a way from Rome to Milan by bike.",
    "What is 17 * 23?", "Play something by Mozart.", "What files are in /tmp?", "Remember: buy \"milk\" & bread\n(soon).",
]

def valid(schema, value):
    jsonschema.validators.validator_for(schema)(schema).validate(value)

def call(index):
    asked = dict(model=model, messages=[{"role": "user", "content": QUESTIONS[index % len(QUESTIONS)]}], tools=TOOLS,
                 temperature=[0, 0.7, 1.2][index % 3], seed=index, max_tokens=4000, parallel_tool_calls=index % 8 == 0)
    named = list(NAMED)[index % len(NAMED)]
    asked["tool_choice"] = {"type": "function", "function": {"name": named}} if index % 5 == 0 else "required"
    if index % 2:
        made, reason = [], None
        for chunk in client.chat.completions.create(**asked, stream=True):
            for delta in chunk.choices:
                assert not delta.delta.content, delta
                for part in delta.delta.tool_calls or []:
                    if part.function.name:
                        assert part.index == len(made) and part.id
                        made.append([part.function.name, ""])
                    made[part.index][1] += part.function.arguments
                reason = delta.finish_reason or reason
    else:
        answer = client.chat.completions.create(**asked).choices[0]
        assert not answer.message.content
        made = [[made.function.name, made.function.arguments] for made in answer.message.tool_calls]
        reason = answer.finish_reason
    assert made and reason == "tool_calls", (index, made, reason)
    assert asked["parallel_tool_calls"] or len(made) == 1, made
    for name, arguments in made:
        assert index % 5 or name == named
        valid(NAMED[name], json.loads(arguments))
    return len(made)

started = time.time()
with ThreadPoolExecutor(8) as pool:
    made = list(pool.map(call, range(calls)))
print(f"{len(made)} of {calls} required calls parse and validate ({sum(made)} calls), {time.time() - started:.0f} s")

def schema_of(file):
    return json.loads(file.read_text())["schema"]

def generate(file):
    schema = schema_of(file)
    format = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": True}}
    messages = [{"role": "user", "content": f"Write an example of this JSON schema:\n{json.dumps(schema)[:1500]}"}]
    try:
        answer = client.chat.completions.create(model=model, messages=messages, response_format=format, max_tokens=400,
                                                temperature=0.8, seed=7).choices[0]
    except openai.BadRequestError as error:
        assert "cannot be" in error.body["message"], error
        return "refused"
    if answer.finish_reason != "stop":
        assert answer.finish_reason == "length", answer
        return "cut"
    value = json.loads(answer.message.content)
    try:
        valid(schema, value)
    except jsonschema.ValidationError as error:
        raise SystemExit(f"{file.name}: {answer.message.content}: {error.message}")
    return "valid"

if schemas:
    files = sorted(pathlib.Path(sys.argv[4]).glob("*.json"))
    files = files[:: max(1, len(files) // schemas)][:schemas]
    started = time.time()
    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(generate, files))
    counts = {outcome: outcomes.count(outcome) for outcome in sorted(set(outcomes))}
    print(f"of {len(files)} schemas: {counts}; every answer that finished validates, {time.time() - started:.0f} s")
    assert counts.get("valid", 0) >= len(files) // 3, counts
print("all held")
