"""Drives a running mettle with the official openai client. Prints what it saw and, last, "all held"."""
import sys, time, json, threading, urllib.request
import openai

url = sys.argv[1]
client = openai.OpenAI(base_url=url + "/v1", api_key="unused", max_retries=0)
health = lambda: json.load(urllib.request.urlopen(url + "/health"))
counters = lambda: health()["models"][0]

model = client.models.list().data[0].id
assert client.models.retrieve(model).id == model

question = [{"role": "user", "content": "Name three colours of the rainbow."}]
asked = dict(model=model, messages=question, temperature=0, max_tokens=40)
whole = client.chat.completions.create(**asked)
text, usage = whole.choices[0].message.content, whole.usage
print("answer:", text)
assert text and whole.choices[0].finish_reason in ("stop", "length")
assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens and 0 < usage.completion_tokens <= 40

parts, reasons, last = [], [], None
for chunk in client.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True}):
    for choice in chunk.choices:
        parts.append(choice.delta.content or "")
        reasons += [choice.finish_reason] if choice.finish_reason else []
    last = chunk.usage or last
assert "".join(parts) == text, ("".join(parts), text)
assert len([part for part in parts if part]) > 3, "streamed in pieces"
assert reasons == [whole.choices[0].finish_reason]
assert (last.prompt_tokens, last.completion_tokens) == (usage.prompt_tokens, usage.completion_tokens)
assert last.prompt_tokens_details.cached_tokens == usage.prompt_tokens - 1, "the second time only the last is computed"

stopped = client.chat.completions.create(**asked, stop=[text[5:9]])
assert stopped.choices[0].message.content == text[:text.index(text[5:9])]
assert stopped.choices[0].finish_reason == "stop"

for change, status, param in [
    (dict(temperature="hot"), 400, "temperature"),
    (dict(max_tokens=0), 400, "max_tokens"),
    (dict(messages=[]), 400, "messages"),
    (dict(model="no-such-model"), 404, "model"),
    (dict(messages=[{"role": "user", "content": "word " * 20000}]), 400, "messages"),
]:
    try:
        client.chat.completions.create(**{**asked, **change})
        raise SystemExit(f"{change} was accepted")
    except openai.APIStatusError as error:
        assert (error.status_code, error.body["param"]) == (status, param), (change, error)
        print("refused:", error.body["message"][:120])

def wait(holds):
    deadline = time.time() + 10
    while not holds(counters()):
        assert time.time() < deadline, counters()
        time.sleep(0.02)

# A client that goes away frees its row, streamed or not. Without its end tokens the model talks on.
before = counters()["cancelled"]
endless = dict(model=model, messages=question, temperature=0.9, max_tokens=8000,
               extra_body={"logit_bias": {"2": -100, "0": -100}})
stream = client.chat.completions.create(**endless, stream=True)
next(iter(stream))
wait(lambda now: now["running"] == 1)
stream.close()
wait(lambda now: now["running"] == 0 and now["cancelled"] == before + 1)
hasty = openai.OpenAI(base_url=url + "/v1", api_key="unused", max_retries=0, timeout=0.5)
try:
    hasty.chat.completions.create(**endless)
    raise SystemExit("the hasty client got an answer")
except openai.APITimeoutError:
    pass
wait(lambda now: now["running"] == 0 and now["cancelled"] == before + 2)

# Eight at once answer as one does.
results = {}
def ask(n):
    results[n] = client.chat.completions.create(**asked).choices[0].message.content
threads = [threading.Thread(target=ask, args=(n,)) for n in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
assert all(results[n] == text for n in range(8)), results
print("counters:", counters())
print("all held")
