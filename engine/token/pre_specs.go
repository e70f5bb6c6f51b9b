package token

import "unicode"

// Pieces of patterns that families share. A name stands for a model's own published
// expression, which llama.cpp in some places only comes near to.
const (
	contractions = `(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])`
	gpt2Words    = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)`

	// White space of all that descends from cl100k: runs that end in a newline, then runs
	// up to the last one, which goes to the next word.
	spaces = `|\s*[\r\n]+|\s+(?!\S)|\s+`

	// cl100k's words. After the digits, Llama 3 and Qwen 2 agree.
	llama3Head = contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|`
	llama3Tail = `| ?[^\s\p{L}\p{N}]+[\r\n]*` + spaces

	// o200k's words begin anew where a small letter meets a capital. Letters without case,
	// and marks, count as both.
	upper     = `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`
	lower     = `[\p{Ll}\p{Lm}\p{Lo}\p{M}]`
	lead      = `[^\r\n\p{L}\p{N}]?`
	o200kHead = lead + upper + `*` + lower + `+` + contractions + `?|` + lead + upper + `+` + lower + `*` + contractions + `?|`
	o200kTail = `| ?[^\s\p{L}\p{N}]+[\r\n/]*` + spaces

	// Kimi's are o200k's, but that Han stands by itself.
	kimiUpper = `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}-[\p{Han}]]`
	kimiLower = `[\p{Ll}\p{Lm}\p{Lo}\p{M}-[\p{Han}]]`

	// DeepSeek's, the older ones and the newer.
	hanToHangul = `[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+`
	hanAndKana  = `[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+`

	deepseek3Head = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+" + `|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+`
	deepseek3Word = deepseek3Head + `[\r\n]*` + spaces

	asianLetters = `[\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\u3040-\u30ff\uff65-\uff9f\u2f00-\u2fdf\u0e00-\u0eff\u1780-\u17ff\u1000-\u109f\uaa60-\uaa7f\ua9e0-\ua9ff\uac00-\ud7af\u1100-\u11ff]+`

	// Letters with case, of the scripts that DeepSeek LLM's expression lists.
	deepseekLetters = "[A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f\u0386" +
		"\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba" +
		"\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d" +
		"\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc" +
		"\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184" +
		"\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf" +
		"\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a\U00010400-\U0001044f\U000104b0-\U000104d3\U000104d8-\U000104fb\U00010c80-\U00010cb2" +
		"\U00010cc0-\U00010cf2\U000118a0-\U000118df\U0001e900-\U0001e943]+"

	// Bloom's class was meant otherwise, perhaps: parentheses and the bar are in it.
	bloomWords = ` ?[^(\s|.,!?…。，、।۔،)]+`
)

// preSpecs: no pattern nests repetitions, so matching is linear in the text, up to one
// walk back over a run of letters or of white space.
var preSpecs = []preSpec{
	{names: []string{"default"}, patterns: []string{`[\p{P}\$\+<=>\^~\|]+`, gpt2Words, `\p{N}+`, `[0-9][0-9][0-9]`}},
	{names: []string{"gpt-2", "phi-2", "mpt", "olmo", "jais", "gigachat", "a.x-4.0", "exaone4", "mellum", "trillion", "granite-docling",
		"modern-bert", "roberta-bpe", "jina-v1-en", "jina-v2-code", "jina-v2-es", "jina-v2-de", "jina-es", "jina-de"},
		patterns: []string{gpt2Words + `|\s+`}},
	{names: []string{"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano"},
		patterns: []string{llama3Head + `\p{N}{1,3}` + llama3Tail}, ignoreMerges: true, addBOS: true},
	{names: []string{"glm4", "chatglm-bpe", "smaug-bpe", "dbrx"}, patterns: []string{llama3Head + `\p{N}{1,3}` + llama3Tail}},
	{names: []string{"qwen2", "deepseek-r1-qwen", "megrez", "kormo", "stablelm2", "hunyuan", "solar-open", "grok-2", "f2llmv2"},
		patterns: []string{llama3Head + `\p{N}` + llama3Tail}},
	{names: []string{"qwen35"}, patterns: []string{contractions + `|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*` + spaces}},
	{names: []string{"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"}, patterns: []string{o200kHead + `\p{N}{1,3}` + o200kTail}},
	{names: []string{"granite-embed-multi-97m"}, patterns: []string{o200kHead + `\p{N}{1,3}` + o200kTail}, ignoreMerges: true},
	{names: []string{"tiny_aya", "cohere2moe"}, numbers: threesBefore(unicode.Nd, noWord), patterns: []string{o200kHead + `\p{N}{1,3}` + o200kTail}},
	{names: []string{"tekken"}, patterns: []string{lead + upper + `*` + lower + `+|` + lead + upper + `+` + lower + `*|\p{N}` + o200kTail},
		ignoreMerges: true, addBOS: true},
	{names: []string{"kimi-k2"}, patterns: []string{`\p{Han}+|` + lead + kimiUpper + `*` + kimiLower + `+` + contractions + `?|` +
		lead + kimiUpper + `+` + kimiLower + `*` + contractions + `?|\p{N}{1,3}` + llama3Tail}},
	{names: []string{"deepseek-llm"}, patterns: []string{`[\r\n]`, `\s?` + deepseekLetters, `\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+`,
		`\s+$`, hanToHangul, `\p{N}+`}},
	{names: []string{"deepseek-coder"}, patterns: []string{`[\r\n]`, `\s?\p{L}+`, `\s?\p{P}+`, hanToHangul, `\p{N}`}},
	{names: []string{"deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"}, patterns: []string{`\p{N}{1,3}`, hanAndKana, deepseek3Word}},
	{names: []string{"spark2_5"}, patterns: []string{`\p{N}{1,3}`, hanAndKana, deepseek3Head + `|[\r\n]|\s+(?!\S)|\s+`, `\p{N}`}},
	{names: []string{"afmoe"}, numbers: threesBefore(unicode.N, anyRune), patterns: []string{asianLetters, deepseek3Word}},
	{names: []string{"superbpe"}, numbers: numbersInThrees},
	{names: []string{"youtu"}, patterns: []string{
		`[\uac00-\ud7a3\u3131-\u318e]+|[！…“”‘’—：；，\u3001-\u303f\ufe30-\ufe4f]+|[\u3105-\u312f]+|` + hanAndKana,
		o200kHead + `\p{N}` + o200kTail}, ignoreMerges: true},
	{names: []string{"starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b", "mellum2"}, patterns: []string{`\p{N}`, gpt2Words}},
	{names: []string{"falcon"}, patterns: []string{"[\\p{P}\\$\\+<=>\\^~\\|`]+", gpt2Words, `[0-9][0-9][0-9]`}},
	{names: []string{"bloom", "gpt3-finnish", "poro-chat"}, patterns: []string{bloomWords}},
	{names: []string{"viking"}, patterns: []string{bloomWords, `\p{N}`}},
	{names: []string{"bailingmoe", "bailingmoe2", "llada-moe"}, patterns: []string{
		`'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`}},
	{names: []string{"seed-coder"}, patterns: []string{llama3Head + `\p{N}| ?[^\s\p{L}\p{N}\r\n]+` + spaces}},
	{names: []string{"laguna"}, patterns: []string{`[^\n]+|[\n]+`, llama3Head + `\p{N}` + llama3Tail}},
	{names: []string{"ufakzeka"}, patterns: []string{`[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}` + llama3Tail}},
	{names: []string{"exaone-moe"}, patterns: []string{
		contractions + `|[^\r\n\p{L}\p{N}]?\p{L}\p{M}*(?: ?\p{L}\p{M}*)*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+`}},
	// White space that comes after the start of a run without a newline isn't searched for one again: that took the run's square.
	{names: []string{"jais-2"}, patterns: []string{llama3Head + `\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|(?<![^\S\r\n])\s*[\r\n]+` +
		`|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s`}},
	{names: []string{"chameleon"}, patterns: []string{`<sentinel:[0-9]+>`, `IMGIMG[A-I]{1,4}Z`, `[\t\n]|    |  `, `\p{N}`, "[\\p{P}!-/:-@\\[-`{-~]", gpt2Words}, addBOS: true},
	{names: []string{"minicpm5"}, patterns: []string{`\p{N}{1,3}`, llama3Head + `\p{N}+` + llama3Tail}, ignoreMerges: true},
	{names: []string{"gemma4", "granite-embed-multi-311m"}, patterns: []string{`[^\n]+|[\n]+`}, chars: true, alwaysBOS: true},
	{names: []string{"sarvam-moe"}, patterns: []string{`[^\n]+|[\n]+`}, chars: true},
	{names: []string{"whitespace"}, patterns: []string{`\s+`}, chars: true, dropSpace: true},
}
