#!/usr/bin/env python3
"""Tiny random models with the logits that transformers computes from them in float64, as GGUF files made by llama.cpp's converter.

    goldens.py --llama-cpp DIR --out DIR [--jobs N] [--list] [NAME ...]

For each NAME: NAME.gguf (matrices BF16, exact, because every weight is rounded to BF16 first; vectors F32), NAME.f32 (little-endian
float32, [rows][vocab]) and NAME.json (tokens, greedy continuation, configuration, source). DIR of llama.cpp holds conversion/ and
gguf-py/. The tokenizer of the files is a stand-in of bytes: hold logits of token ids against a golden, not text.

Every parameter and every saved buffer is random, so that a reader who forgets a tensor computes other logits. The forward pass runs
with each cast to float32 widened to float64 (Widen), so that a golden has no noise of its own; the pass without that is computed
too, and their distance is printed: above 1e-4 it says that widening changed the model's meaning.
"""
import os
os.environ['TQDM_DISABLE'] = '1'
import argparse, contextlib, copy, json, logging, multiprocessing, re, signal, sys, tempfile, traceback
from pathlib import Path

import numpy as np
import torch
import transformers
from torch.overrides import TorchFunctionMode

from models import MODELS


class Widen(TorchFunctionMode):
    """Within it, whatever asks torch for float32 gets float64."""
    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func == torch.Tensor.float:
            func = torch.Tensor.double
        wide = lambda x: torch.float64 if x is torch.float32 else x
        return func(*map(wide, args), **{k: wide(v) for k, v in (kwargs or {}).items()})


def random_values(name, p, g):
    """Values for the parameter or buffer called name, of a size at which the model's logits depend on each of them."""
    r = torch.randn(p.shape, generator=g, dtype=torch.float32)
    leaf = name.rsplit('.', 1)[-1]
    old = p.detach().float()
    old = old if bool(torch.isfinite(old).all()) and float(old.abs().max()) < 64 else torch.zeros_like(r)
    if leaf in ('A_log', 'dt_bias', 'D'):
        return old + 0.1 * r
    if 'e_score' in name or 'expert_bias' in name or 'moe_statics' in name:
        return 0.3 * r
    if leaf == 'sinks' or 'attention_sink' in leaf:
        return r
    if 'norm' in name.rsplit('.', 1)[0].rsplit('.', 1)[-1].lower() or '.norms.' in name:
        return old + 0.2 * r
    if 'conv1d' in name or name.endswith('conv.conv.weight'):
        return 0.5 * r if p.dim() >= 2 else old + 0.2 * r
    if p.dim() < 2:
        return old + 0.2 * r
    return r * 0.5 if 'embed' in name else r * (1.5 / p.shape[-1] ** 0.5)


KEPT = re.compile(r'inv_freq|embed_scale|act_fn\.(beta|eps)|\.visual\.|^visual\.')  # constants of the code, and towers that no text passes through


def randomise(model, g):
    saved = set(model.state_dict())
    with torch.no_grad():
        for name, p in list(model.named_parameters()) + [(n, b) for n, b in model.named_buffers() if n in saved]:
            if not p.is_floating_point() or KEPT.search(name):
                continue
            v = random_values(name, p, g)
            p.data = (v.bfloat16() if p.dim() >= 2 else v).float()


def vocabulary(converter):
    """Writes a vocabulary of three special tokens, the 256 bytes and words, in place of a tokenizer's files."""
    tokens, scores, kinds = [], [], []
    for i in range(converter.hparams['vocab_size']):
        if i < 3:
            text, kind = (b'<unk>', b'<s>', b'</s>')[i], (2, 3, 3)[i]
        elif i < 259:
            text, kind = b'<0x%02X>' % (i - 3), 6
        else:
            text, kind = ('\u2581w%d' % i).encode(), 1
        tokens.append(text), scores.append(-float(i)), kinds.append(kind)
    w = converter.gguf_writer
    w.add_tokenizer_model('llama'), w.add_tokenizer_pre('default')
    w.add_token_list(tokens), w.add_token_scores(scores), w.add_token_types(kinds)
    w.add_bos_token_id(1), w.add_eos_token_id(2), w.add_unk_token_id(0)


def with_stand_in(cls):
    """Gives a converter class, and those that it holds and hands the work to, the stand-in vocabulary."""
    cls.set_vocab = vocabulary
    for inner in vars(cls).values():
        if isinstance(inner, type) and hasattr(inner, 'set_vocab'):
            inner.set_vocab = vocabulary
    return cls


def build(spec):
    """The model of a spec, by the first of its configurations that this transformers takes."""
    errors = []
    for args, within in [(a, w) for a in spec.configurations() for w in (Widen, contextlib.nullcontext)]:
        try:
            cfg = transformers.AutoConfig.for_model(spec.model_type, **copy.deepcopy(args))
            cfg._attn_implementation = 'eager'
            cls = getattr(transformers, spec.cls) if spec.cls else transformers.AutoModelForCausalLM
            with within():
                model = (cls._from_config if spec.cls else cls.from_config)(cfg, attn_implementation='eager').eval()
            break
        except Exception:
            errors.append(traceback.format_exc())
    else:
        raise RuntimeError('no configuration of %s was taken:\n%s' % (spec.model_type, '\n'.join(errors)))
    if errors:
        print('tried before:\n' + '\n'.join(errors))
    for p in model.parameters():
        p.data = p.data.float()
    try:
        model.set_experts_implementation('eager')
    except Exception:
        pass
    return model, args


def save(model, spec, folder):
    """The model as a checkpoint of its authors: the configuration and the names that llama.cpp's converter reads."""
    model.save_pretrained(folder)
    config = json.load(open(folder + '/config.json'))
    if spec.architecture:
        config['architectures'] = [spec.architecture]
    for key, value in spec.extra.items():
        config[key] = value
        if isinstance(config.get('text_config'), dict) and key in config['text_config']:
            config['text_config'][key] = value
    json.dump(config, open(folder + '/config.json', 'w'))
    vocab = (config.get('text_config') or config)['vocab_size']
    json.dump(dict(model=dict(vocab={str(i): i for i in range(vocab)}), added_tokens=[]), open(folder + '/tokenizer.json', 'w'))
    from safetensors.torch import load_file, save_file
    for f in Path(folder).glob('*.safetensors'):
        tensors = load_file(f)
        if spec.rename:
            for pattern, to in spec.rename:
                tensors = {re.sub(pattern, to, k): v for k, v in tensors.items()}
        if spec.turn:
            tensors = {k: v.transpose(-1, -2) if re.search(spec.turn, k) else v for k, v in tensors.items()}
        if spec.rename or spec.turn:
            save_file({k: v.contiguous() for k, v in tensors.items()}, f, metadata={'format': 'pt'})
        spec.saved = {k: list(v.shape) for k, v in tensors.items()}


def convert(name, spec, folder, out):
    from conversion import ModelBase, ModelType, get_model_architecture, get_model_class
    import gguf
    architecture = get_model_architecture(ModelBase.load_hparams(Path(folder), False), ModelType.TEXT)
    cls = with_stand_in(get_model_class(architecture))
    for key, value in spec.converter.items():
        setattr(cls, key, value)
    load = ModelBase.load_hparams  # it may go through transformers, which drops keys that it no longer knows
    ModelBase.load_hparams = staticmethod(lambda *a, **kw: {**load(*a, **kw), **spec.extra})
    with torch.inference_mode():
        cls(Path(folder), gguf.LlamaFileType.MOSTLY_BF16, out, model_name=name).write()
    return architecture


def logits(model, tokens):
    with torch.no_grad():
        return model(input_ids=tokens, use_cache=False).logits[0].double()


def distance(a, b):
    """The worst row's relative difference."""
    return float(((a - b).norm(dim=-1) / b.norm(dim=-1)).max())


def make(name, out):
    spec = MODELS[name]
    torch.manual_seed(spec.seed)
    g = torch.Generator().manual_seed(spec.seed)
    model, args = build(spec)
    randomise(model, g)
    if hasattr(model, 'tie_weights'):
        model.tie_weights()
    stem = str(Path(out) / name)
    with tempfile.TemporaryDirectory() as folder:
        try:
            save(model, spec, folder)
            architecture = convert(name, spec, folder, Path(stem + '.gguf'))
        except Exception:
            print('%s: config.json: %s\n%s: saved: %s' % (name, open(folder + '/config.json').read(), name, json.dumps(getattr(spec, 'saved', {}))))
            raise
    vocab = spec.args['vocab_size']
    tokens = torch.randint(3, vocab, (1, spec.rows), generator=torch.Generator().manual_seed(spec.seed + 1))
    model = model.double()
    how = 'float64, float32 casts widened'
    try:
        with Widen():
            y = logits(model, tokens)
    except Exception:
        print('%s: widened pass failed, plain one taken: %s' % (name, traceback.format_exc()))
        how, y = 'float64', None
    try:
        plain = logits(model, tokens)
    except Exception:
        if y is None:
            raise
        print('%s: plain pass failed: %s' % (name, traceback.format_exc(limit=-2)))
        plain = y
    noise = distance(plain, y) if y is not None else 0.0
    y = plain if y is None else y
    if not bool(torch.isfinite(y).all()):
        raise RuntimeError('logits are not finite')
    lg = y.to(torch.float32).numpy()
    lg.astype('<f4').tofile(stem + '.f32')
    top2 = torch.topk(y, 2).values
    json.dump(dict(vocab=int(lg.shape[1]), rows=int(lg.shape[0]), tokens=tokens[0].tolist(), hidden=False, dtype=how, std=float(lg.std()),
                   greedy=lg.argmax(1).tolist(), gap=float((top2[:, 0] - top2[:, 1]).min()), model_type=spec.model_type, architecture=architecture,
                   seed=spec.seed, source='transformers %s, torch %s' % (transformers.__version__, torch.__version__), config=args), open(stem + '.json', 'w'))
    size = os.path.getsize(stem + '.gguf')
    return '%-22s ok %s rows %d std %.3g noise %.1e gap %.2g %d bytes, %s' % (name, architecture, lg.shape[0], lg.std(), noise, float((top2[:, 0] - top2[:, 1]).min()), size, how)


def too_long(*_):
    raise TimeoutError('no golden after 150 s')


def attempt(job):
    name, out = job
    torch.set_num_threads(1)
    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(150)
    log = open(str(Path(out) / (name + '.log')), 'w')
    sys.stdout = sys.stderr = log
    try:
        return make(name, out)
    except BaseException as e:
        traceback.print_exc()
        for ending in ('.gguf', '.f32', '.json'):
            Path(out, name + ending).unlink(missing_ok=True)
        at = traceback.extract_tb(e.__traceback__)[-1]
        return '%-22s FAILED %s: %s (%s:%d)' % (name, type(e).__name__, str(e)[-300:].replace('\n', ' '), os.path.basename(at.filename), at.lineno)
    finally:
        signal.alarm(0)
        log.close()


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--llama-cpp'), p.add_argument('--out'), p.add_argument('--jobs', type=int, default=1)
    p.add_argument('--list', action='store_true'), p.add_argument('names', nargs='*')
    a = p.parse_args()
    if a.list:
        for name, spec in MODELS.items():
            print('%-22s %s' % (name, spec.model_type))
        return
    os.makedirs(a.out, exist_ok=True)
    sys.path[:0] = [a.llama_cpp, a.llama_cpp + '/gguf-py']
    logging.disable(logging.WARNING)
    import conversion, gguf  # noqa: F401: imported once, before the workers are forked
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING as known
    print('not in transformers %s: %s' % (transformers.__version__, sorted({s.model_type for s in MODELS.values() if s.model_type not in known})), flush=True)
    jobs = [(n, a.out) for n in a.names or MODELS]
    bad = 0
    with multiprocessing.get_context('fork').Pool(a.jobs, maxtasksperchild=1) as pool:
        for line in pool.imap_unordered(attempt, jobs, chunksize=1):
            bad += ' FAILED ' in line
            print(line, flush=True)
    print('%d of %d failed' % (bad, len(jobs)))


if __name__ == '__main__':
    main()
