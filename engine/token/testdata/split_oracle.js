// What Hugging Face's tokenizers makes of the texts here with the expressions that models
// publish: the words before any merging.
//
//   npm pack tokenizers@0.23.2; tar xzf tokenizers-0.23.2.tgz
//   node split_oracle.js package/tokenizers.linux-x64-gnu.node > split.jsonl
//
// The expressions stand as published (tokenizer.json, or llama.cpp's note of it), not as
// pre_specs.go has them. Texts are ours: the first by hand, then some drawn by chance, of
// whose words only a hash is kept.
const path = require('path'), crypto = require('crypto');
const hf = require(path.resolve(process.argv[2]));

// Only a tokenizer of JSON takes an expression; the package's own function takes strings.
const preTokenizer = json => hf.Tokenizer.fromString(JSON.stringify({version: '1.0', added_tokens: [], normalizer: null, pre_tokenizer: json,
  post_processor: null, decoder: null, truncation: null, padding: null, model: {type: 'BPE', vocab: {a: 0}, merges: []}})).getPreTokenizer();
const split = e => preTokenizer({type: 'Split', pattern: {Regex: e}, behavior: 'Isolated', invert: false});
const punctuation = {type: 'Punctuation', behavior: 'Contiguous'};

const gpt2 = String.raw`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`;
const cl100k = digits => String.raw`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|` + digits + String.raw`| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`;
const o200k = (digits, suffix) => String.raw`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+` + suffix +
  String.raw`|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*` + suffix + '|' + digits +
  String.raw`| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`;
const contractions = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?";
const han = '[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]', hanLower = '[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]';
const one = '\\p{N}', three = '\\p{N}{1,3}';
const bloom = String.raw` ?[^(\s|[.,!?…。，、।۔،])]+`;
const cjk = '[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+';

const deepseek = '[!"#$%&\'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+';

const models = {
  'gpt-2': [gpt2],
  'llama-bpe': [cl100k(three)],
  'glm4': [cl100k(three)],
  'qwen2': [cl100k(one)],
  'qwen35': [String.raw`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`],
  'gpt-4o': [o200k(three, contractions)],
  'tekken': [o200k(one, '')],
  'kimi-k2': [String.raw`[\p{Han}]+|[^\r\n\p{L}\p{N}]?` + han + '*' + hanLower + '+' + contractions + String.raw`|[^\r\n\p{L}\p{N}]?` + han + '+' + hanLower + '*' + contractions +
    String.raw`|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`],
  'deepseek-llm': ['[\r\n]',
    '\\s?[A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a\u{10400}-\u{1044f}\u{104b0}-\u{104d3}\u{104d8}-\u{104fb}\u{10c80}-\u{10cb2}\u{10cc0}-\u{10cf2}\u{118a0}-\u{118df}\u{1e900}-\u{1e943}]+',
    '\\s?[!-/:-~！-／：-～‘-‟\u3000-。]+', '\\s+$', cjk, '\\p{N}+'],
  'deepseek-coder': ['[\r\n]', '\\s?\\p{L}+', '\\s?\\p{P}+', cjk, '\\p{N}'],
  'deepseek-v3': [three, '[一-龥\u3040-ゟ゠-ヿ]+',
    deepseek + '[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+'],
  'youtu': ['[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥\u3040-ゟ゠-ヿ]+', o200k(one, contractions)],
  'smollm': [one, gpt2],
  'falcon': [punctuation, gpt2, '[0-9][0-9][0-9]'],
  'bloom': [bloom],
  'viking': [bloom, one],
  'bailingmoe': [String.raw`'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`],
  'seed-coder': [String.raw`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}` + '\r\n]+|\\s*[\r\n]+|\\s+(?!\\S)|\\s+'],
  'laguna': ['[^\n]+|[\n]+', cl100k(one)],
  'minicpm5': [three, cl100k('\\p{N}+')],
  'granite-embed-multi-97m': [o200k(three, contractions)],
  'tiny_aya': [String.raw`\d{1,3}(?=(?:\d{3})*\b)`, o200k(three, contractions)],
  'superbpe': ['\\p{N}+', String.raw`(?=(\d{3})+(?!\d))`],
  // Of its digits only the rule is known: threes from the right.
  'afmoe': [String.raw`\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))`, '[\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\u3040-\u309f\u30a0-\u30ff\uff65-\uff9f\u2f00-\u2fdf\u0e00-\u0e7f\u0e80-\u0eff\u1780-\u17ff\u1000-\u109f\uaa60-\uaa7f\ua9e0-\ua9ff\uac00-\ud7af\u1100-\u11ff]+',
    deepseek + '[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+'],
  'spark2_5': [three, '[一-龥\u3040-ゟ゠-ヿ]+', deepseek + '|[\r\n]|\\s+(?!\\S)|\\s+', one],
  'exaone-moe': [String.raw`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+`],
  'jais-2': [cl100k(three).replace('|\\s+(?!\\S)|\\s+', [512, 256, 128, 64, 32, 16, 8, 4, '1,2'].map(n => `|\\s{${n}}(?!\\S)`).join('') + '|\\s{1}')],
  'chameleon': ['<sentinel:[0-9]+>', '(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z', '([\\t\\n]|    |  )', {type: 'Digits', individual_digits: true}, '[\\p{P}!-/:-@\\[-`{-~]', gpt2],
  'ufakzeka': [String.raw`[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`],
  'gemma4': ['[^\n]+|[\n]+'],
  'sarvam-moe': ['[^\n]+|[\n]+'],
  'whitespace': ['\\S+'],
};

const texts = [
  'Hello, world!', "I'm sure they're 12, we've 3; he'd say it'll do. It's John's, isn't it?", "I'M SURE THEY'RE, WE'VE, HE'D, IT'LL",
  'camelCase PascalCase XMLHttpRequest iPhone15Pro McDonaldS aBC ABc', 'snake_case __init__ CONST_NAME x_1', 'ÀÉÎ éàü ÀéÎü straßeSTRASSE ΑΒΓαβγ АБВабв АбВг',
  'ǅ ǅabc ABǅ ʰʷ aʰB', '1', '12', '123', '1234', '12345678', '3.14159', '1,234,567.89', 'a1b22c333d4444', '½ Ⅻ ٣٤٥٦ ²³ 𝟘𝟙𝟚𝟛',
  ' ', '  ', '   ', '    a', '  1', '   !', ' \t \n\n  x', '\n', '\r\n', '\n\n\n', 'a\n\nb', 'a \n b', 'a\r\n\r\n  b', '\t\tif (x) {\n\t\t\treturn;\n\t\t}\n', 'x   \n', 'end   ', 'end\n   ',
  '\u00a0a\u00a0\u00a0b', '\u2003x\u3000y\u2028z\u0085w', 'a\u200bb\ufeffc', 'tab\tsep\vvert\fform',
  '!!!', '!?\n', '.\n\n', '...\r\n..', 'path/to/file.txt //comment\n/// doc\n', 'http://example.org/a?b=c&d=e#f', '(a) [b] {c} <d> "e" `f`', '$5 + 3 = 8 ~ ^ | \\ @ # % & *',
  '.a .A .é #include <stdio.h> @name -x --long /usr/bin', "''s 's ' s 'S 'x 'll'll", '你好，世界！', '今天是2024年1月15日。', 'abc中文def ABC中文DEF 中文 中文', 'こんにちは世界カタカナ ｶﾀｶﾅ 々〆', '안녕하세요 세계 ㄱㄴㄷ', 'ㄅㄆㄇ 注音', '！…“”‘’—：；，、。〈〉',
  'สวัสดีชาวโลก', 'नमस्ते दुनिया', 'مرحبا، بالعالم؟ ۔', 'שָׁלוֹם עוֹלָם', 'e\u0301 a\u0300b \u0301 \u0301\u0301x A\u0301B é\u0301É\u0301', '1\u0301 !\u0301 \n\u0301', 'வணக்கம் బాగు',
  '🦙', '🦙🦙 🦙a', '👩‍👩‍👧‍👦 👍🏽 🇩🇪 ☃\ufe0f', '∑∞√ €£¥ ©®™ ←→', 'x\u0000y\u0001\u0002', 'a' + ' b'.repeat(5), '𐐀𐐨 𝐀𝐚 ＡＢｃ１２', 'ᏣᎳᎩ Აბ აბ ꭰ', '㐀㐁 𠀀𠀁 \uf900 〇 々', 'He said: "Don\'t!"\n\n- one\n- two\n\n\n```go\nfunc main() {\n\tfmt.Println("hi", 42)\n}\n```\n',
  '1234567 12345abc 1234567_ 1234é 1234! 12345² ²12345 1Ⅻ234 ٣٤٥٦٧٨٩ 12٣٤ 𝟘𝟙𝟚𝟛 1234\u0301', 'x1234', 'one two three  four é ü\u0301 中 文', '<sentinel:12> <sentinel:> IMGIMGABCZ IMGIMGABCDEZ',
  'a' + ' '.repeat(9) + '\n' + ' '.repeat(6) + '1' + '\u2028'.repeat(5) + 'x', '!\n   \n  y',
];

// A text by chance: characters that the expressions tell apart.
const alphabet = [...'aabBzZ\'\'sStTrRevVdDlLmM  \u00a0\t\n\n\r\r129٣²éÉßΣσʰǅ中文〇々あア한ㄱไท้\u0301\u0301.,!/$+-_"（。、，🦙\u200d'];
let state = 1;
const draw = n => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0, Math.floor(state / 65536) % n);
const chance = [];
for (let i = 0; i < 150; i++) {
  let s = '';
  for (let n = 4 + draw(28); n > 0; n--) s += alphabet[draw(alphabet.length)];
  chance.push(s);
}
chance.push('a' + ' '.repeat(7) + 'b' + ' '.repeat(1023) + 'c' + ' '.repeat(600));

const compiled = Object.fromEntries(Object.entries(models).map(([name, steps]) => [name, steps.map(e => typeof e === 'string' ? split(e) : preTokenizer(e))]));

function words(name, text) {
  let out = [text];
  for (const pre of compiled[name]) {
    out = out.flatMap(w => pre.preTokenizeString(w).map(([s]) => s));
  }
  if (out.join('') !== text) throw new Error(name + ': lost a part of ' + JSON.stringify(text));
  return out;
}

const lines = texts.map(text => {
  const by = new Map();
  for (const name in models) {
    const w = JSON.stringify(words(name, text));
    by.set(w, [...(by.get(w) || []), name]);
  }
  return JSON.stringify({text, split: [...by].map(([w, pre]) => ({pre, words: JSON.parse(w)}))});
});
for (const text of chance) {
  const hash = {};
  for (const name in models) hash[name] = crypto.createHash('sha256').update(words(name, text).join('\x1f')).digest('hex').slice(0, 8);
  lines.push(JSON.stringify({text, hash}));
}
console.log(lines.join('\n'));
