"""What Jinja2 itself makes of every template in a folder with every conversation here.

    python3 oracle.py ../../../../../shared/testdata/vendor/templates > jinja2.json
    python3 oracle.py language.txt > language.json   (and of our own snippets)

The settings are those of Hugging Face transformers' apply_chat_template. Only hashes are
kept: the templates are other people's. An error is the empty string. Needs jinja2 3.1.6.
"""
import datetime, glob, hashlib, json, os, sys
import jinja2, jinja2.ext, jinja2.nodes, jinja2.sandbox


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def refuse(message):
    raise jinja2.TemplateError(message)


env = jinja2.sandbox.SandboxedEnvironment(  # theirs is also immutable: ours can append
    trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
env.filters["tojson"] = tojson
env.globals["raise_exception"] = refuse
env.globals["strftime_now"] = lambda f: datetime.datetime(2025, 7, 10, 12).strftime(f)


def render(source, data):
    try:
        data = json.loads(json.dumps(data))
        return env.from_string(source).render(bos_token="<s>", eos_token="</s>", **data)
    except Exception as e:
        return None if os.environ.get("SHOW") is None else "ERR " + type(e).__name__ + str(e)


def digest(text):
    return "" if text is None else hashlib.sha256(text.encode()).hexdigest()[:16]


if __name__ == "__main__":
    if sys.argv[1].endswith(".txt"):
        snippets = open(sys.argv[1]).read().rstrip("\n").split("\n---\n")
        print(json.dumps([[s, render(s, {})] for s in snippets], indent=1, ensure_ascii=False))
        sys.exit()
    here, folder = os.path.dirname(os.path.abspath(__file__)), sys.argv[1]
    conversations = json.load(open(os.path.join(here, "conversations.json")))
    sources = {os.path.basename(p): open(p).read() for p in sorted(glob.glob(os.path.join(folder, "*.jinja")))}
    for case in json.load(open(os.path.join(folder, "expected.json"))):
        sources[case["name"]] = case["chat_template"]
    if len(sys.argv) > 2:  # one template, one conversation: the text itself
        print(render(sources[sys.argv[2]], conversations[int(sys.argv[3])]), end="")
    else:
        print("{\n" + ",\n".join(json.dumps(n) + ": " + json.dumps([digest(render(s, c)) for c in conversations]) for n, s in sources.items()) + "\n}")
