// The ids that Hugging Face's tokenizers gives texts for small vocabularies, made here of the texts themselves.
//
//   npm pack tokenizers@0.23.2; tar xzf tokenizers-0.23.2.tgz
//   node vocab_oracle.js package/tokenizers.linux-x64-gnu.node split.jsonl
//
// writes wpm.jsonl, whose first line is the vocabulary as a GGUF file would hold it. The texts are those of split.jsonl and some more.
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

wpm();
