// The ids that Hugging Face's tokenizers gives texts for small vocabularies, made here of the texts themselves.
//
//   npm pack tokenizers@0.23.2; tar xzf tokenizers-0.23.2.tgz
//   node vocab_oracle.js package/tokenizers.linux-x64-gnu.node split.jsonl
//
// writes wpm.jsonl, chars.jsonl and ugm.jsonl, whose first lines are the vocabularies as a GGUF file would hold them. The texts are those of
// split.jsonl and some more.
const fs = require('fs'), path = require('path');
const hf = require(path.resolve(process.argv[2]));

let state = 7;
const draw = n => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0, Math.floor(state / 65536) % n);
const splitTexts = fs.readFileSync(process.argv[3], 'utf8').trim().split('\n').map(line => JSON.parse(line).text);
const tokenizer = (normalizer, preTokenizer, model) => hf.Tokenizer.fromString(JSON.stringify({version: '1.0', truncation: null, padding: null, added_tokens: [], normalizer,
  pre_tokenizer: preTokenizer, post_processor: null, decoder: null, model}));
const encode = async (t, text) => (await t.encode(text, null, {addSpecialTokens: false})).getIds();

async function write(name, vocabulary, texts, kinds) {
  const lines = [JSON.stringify(vocabulary)];
  for (const text of texts) {
    const line = {text};
    for (const kind in kinds) line[kind] = await encode(kinds[kind], text);
    lines.push(JSON.stringify(line));
  }
  fs.writeFileSync(name, lines.join('\n') + '\n');
}

// Each character but one in nine is a piece, at the start of a word, inside one, or both; so are some beginnings and ends of words.
async function wpm() {
  const texts = [...splitTexts, 'x'.repeat(100), 'x'.repeat(101), 'x.'.repeat(101), '한국어를 배우자', 'İstanbul ISTANBUL ıİ', 'ΣΑΣ σας', 'a\ufffdb \ue000c \u00add', 'ﬁne ﬁNE', 'Ⅻ Å \u212b Å',
    '\u{2b820}a\u{2b920}b\u{2ceaf}c\u{2f81f}d', 'a\u0378b', 'x▁y ▁', 'a\u0903b\u20ddc', '$x^2~`|+<=>', '¡hola! «ça» „so“'];
  const pieces = new Set(['[PAD]', '[UNK]']);
  const add = (begin, s) => s && pieces.add((begin ? '▁' : '') + s);
  const all = texts.concat(texts.map(s => s.toLowerCase()), texts.map(s => s.normalize('NFD').replace(/\p{Mn}/gu, ''))).join(' ');
  for (const c of new Set(all.replace(/\s/gu, ''))) {
    const n = draw(9);
    if (n > 0 && n < 8) add(true, c);
    if (n > 1) add(false, c);
  }
  for (const [word] of all.matchAll(/\p{L}{2,}/gu)) {
    const runes = [...word], n = 1 + draw(runes.length);
    if (draw(2)) add(true, runes.slice(0, n).join(''));
    if (draw(3) == 0) add(false, runes.slice(n).join(''));
  }
  const tokens = [...pieces], vocab = {};
  tokens.forEach((t, id) => { vocab[id < 2 ? t : t.startsWith('▁') ? t.slice(1) : '##' + t] = id; });
  const kind = (lowercase, accents) => tokenizer({type: 'BertNormalizer', clean_text: true, handle_chinese_chars: true, strip_accents: accents, lowercase}, {type: 'BertPreTokenizer'},
    {type: 'WordPiece', unk_token: '[UNK]', continuing_subword_prefix: '##', max_input_chars_per_word: 100, vocab});
  await write('wpm.jsonl', {tokens, types: tokens.map((_, id) => id < 2 ? 3 : 1)}, texts, {uncased: kind(true, null), cased: kind(false, null), accents: kind(true, false)});
}

// The 300 pairs that are the most frequent join. One character in seven is no token: it becomes bytes.
async function chars() {
  const texts = [...splitTexts, '\n'.repeat(40), ' '.repeat(40) + 'x', 'a ▁b▁ ▁', '<0x41> <unk>', 'a\0b', '\ufffd', 'x \n \n\n y\n'];
  const bytes = [...Array(256).keys()].map(b => `<0x${b.toString(16).toUpperCase().padStart(2, '0')}>`);
  let words = texts.join('\n').replaceAll(' ', '▁').match(/[^\n]+|\n+/g).map(w => [...w]);
  const tokens = ['<unk>', ...bytes, ...[...new Set(words.flat())].filter(c => c < '\u007f' && c > ' ' || c == '▁' || draw(7))], merges = [];
  while (merges.length < 300) {
    const count = new Map();
    for (const w of words) for (let i = 1; i < w.length; i++) count.set(w[i - 1] + ' ' + w[i], (count.get(w[i - 1] + ' ' + w[i]) || 0) + 1);
    const [best] = [...count].filter(([pair]) => pair.split(' ').every(half => tokens.includes(half))).reduce((a, b) => b[1] > a[1] ? b : a);
    const [left, right] = best.split(' ');
    merges.push(best);
    if (!tokens.includes(left + right)) tokens.push(left + right);
    words = words.map(w => w.reduce((done, c) => (done.length && done.at(-1) == left && c == right ? done.push(done.pop() + c) : done.push(c), done), []));
  }
  const vocab = Object.fromEntries(tokens.map((t, id) => [t, id]));
  const kind = tokenizer({type: 'Replace', pattern: {String: ' '}, content: '▁'}, {type: 'Split', pattern: {Regex: '[^\\n]+|\\n+'}, behavior: 'Isolated', invert: false},
    {type: 'BPE', dropout: null, unk_token: '<unk>', continuing_subword_prefix: null, end_of_word_suffix: null, fuse_unk: true, byte_fallback: true, ignore_merges: false,
      vocab, merges: merges.map(m => m.split(' '))});
  await write('chars.jsonl', {tokens, merges, types: tokens.map((_, id) => id == 0 ? 2 : id <= 256 ? 6 : 1)}, texts, {gemma4: kind});
}

// Each character but one in nine is a piece, and so are parts of words with and without the space before them; scores are drawn. The
// tokens for bytes come last: one kind has none.
async function ugm() {
  const texts = [...splitTexts, '한국어를 배우자', 'İstanbul', 'Ⅻ Å', 'a\ufffdb', 'x'.repeat(300)].map(s => s.replaceAll('\u2581', ''));
  const all = texts.join(' ').replaceAll(' ', '▁'), pieces = new Set(['▁']);
  for (const c of new Set(all)) if (draw(9)) pieces.add(c);
  for (const [word] of all.matchAll(/▁?[^▁\s]{2,}/gu)) {
    const runes = [...word], from = draw(2) && draw(runes.length - 1), n = 2 + draw(runes.length - from - 1);
    if (draw(2)) pieces.add(runes.slice(from, from + n).join(''));
  }
  const bytes = [...Array(256).keys()].map(b => `<0x${b.toString(16).toUpperCase().padStart(2, '0')}>`);
  const tokens = ['<unk>', '</s>', ...pieces, ...bytes], scores = tokens.map((t, id) => id < 2 || id >= tokens.length - 256 ? 0 : -(2 + draw(1000) / 64 + [...t].length / 4));
  const normalizer = {type: 'Sequence', normalizers: [{type: 'Replace', pattern: {Regex: ' +'}, content: ' '}, {type: 'Replace', pattern: {Regex: '\\A | \\z'}, content: ''}]};
  const kind = (n, byte_fallback) => tokenizer(normalizer, {type: 'Metaspace', replacement: '▁', prepend_scheme: 'always', split: false},
    {type: 'Unigram', unk_id: 0, byte_fallback, vocab: tokens.slice(0, n).map((t, id) => [t, scores[id]])});
  await write('ugm.jsonl', {tokens, scores, types: tokens.map((_, id) => id == 0 ? 2 : id == 1 ? 3 : id < tokens.length - 256 ? 1 : 6)}, texts,
    {ugm: kind(tokens.length - 256, false), bytes: kind(tokens.length, true)});
}

wpm().then(chars).then(ugm);
