package token

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
	hanToHangul   = `[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+`
	hanAndKana    = `[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+`
	deepseek3Word = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+" + `|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*` + spaces

	// Letters with case, of the scripts that DeepSeek LLM's expression lists.
	deepseekLetters = `[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼ` +
		"\u1fbe" + `ῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ` + "\u2126" + `ℨ` + "\u212a" + `-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+`

	// Bloom's class was meant otherwise, perhaps: parentheses and the bar are in it.
	bloomWords = ` ?[^(\s|.,!?…。，、।۔،)]+`
)

// preSpecs: no pattern nests repetitions, so matching is linear in the text, up to one
// walk back over a run of letters or of white space.
var preSpecs = []preSpec{
	{names: []string{"default"}, patterns: []string{`[\p{P}\$\+<=>\^~\|]+`, gpt2Words, `\p{N}+`, `[0-9][0-9][0-9]`}},
	{names: []string{"gpt-2", "phi-2", "mpt", "olmo", "jais", "gigachat", "a.x-4.0", "exaone4", "mellum", "trillion", "granite-docling"},
		patterns: []string{gpt2Words + `|\s+`}},
	{names: []string{"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2"},
		patterns: []string{llama3Head + `\p{N}{1,3}` + llama3Tail}, ignoreMerges: true, addBOS: true},
	{names: []string{"glm4", "chatglm-bpe", "smaug-bpe", "dbrx"}, patterns: []string{llama3Head + `\p{N}{1,3}` + llama3Tail}},
	{names: []string{"qwen2", "deepseek-r1-qwen", "megrez", "kormo", "stablelm2", "hunyuan", "solar-open", "grok-2"},
		patterns: []string{llama3Head + `\p{N}` + llama3Tail}},
	{names: []string{"qwen35"}, patterns: []string{contractions + `|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*` + spaces}},
	{names: []string{"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"}, patterns: []string{o200kHead + `\p{N}{1,3}` + o200kTail}},
	{names: []string{"tekken"}, patterns: []string{lead + upper + `*` + lower + `+|` + lead + upper + `+` + lower + `*|\p{N}` + o200kTail},
		ignoreMerges: true, addBOS: true},
	{names: []string{"kimi-k2"}, patterns: []string{`\p{Han}+|` + lead + kimiUpper + `*` + kimiLower + `+` + contractions + `?|` +
		lead + kimiUpper + `+` + kimiLower + `*` + contractions + `?|\p{N}{1,3}` + llama3Tail}},
	{names: []string{"deepseek-llm"}, patterns: []string{`[\r\n]`, `\s?` + deepseekLetters, `\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+`,
		`(?<!\s)\s+$`, hanToHangul, `\p{N}+`}}, // the (?<!\s) only saves trying every place in a run
	{names: []string{"deepseek-coder"}, patterns: []string{`[\r\n]`, `\s?\p{L}+`, `\s?\p{P}+`, hanToHangul, `\p{N}`}},
	{names: []string{"deepseek-v3", "hunyuan-dense", "joyai-llm"}, patterns: []string{`\p{N}{1,3}`, hanAndKana, deepseek3Word}},
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
	{names: []string{"minicpm5"}, patterns: []string{`\p{N}{1,3}`, llama3Head + `\p{N}+` + llama3Tail}, ignoreMerges: true},
}
