// Package sample turns logits into the next token's id.
//
// It is pure: no device, no tokenizer, no clock. The same parameters, seed, history and
// logits give the same ids, on every machine whose math.Log and math.Pow agree.
//
// # The chain
//
// [Sampler.Next] passes the logits through these stages, each of which does nothing until a
// parameter turns it on:
//
//  1. mask: what [Mask] forbids (a grammar, say) can't be chosen by anything below
//  2. logit bias: added to the logits it names; −Inf bans a token
//  3. penalties: repeat, then frequency and presence, over the last PenaltyLastN tokens
//  4. DRY: against continuing a sequence that has been there before
//  5. top-k
//  6. typical-p
//  7. top-p
//  8. min-p
//  9. XTC
//  10. temperature, then the draw
//
// This is the default order of llama.cpp (common_params_sampling: logit bias, penalties,
// dry, top_k, typ_p, top_p, min_p, xtc, temperature), so settings found in the field mean
// the same here. Temperature comes last: the filters judge the model's own distribution, and
// a high temperature spreads the choice over what they kept, but lets no nonsense in. vLLM and
// transformers do it the other way round (temperature first); their top-p
// at a temperature other than 1 keeps other tokens. Each probability filter sees what the one
// before left, with its sum made 1 again.
//
// Temperature 0 takes the most likely token after stage 4: no filter matters.
//
// # What holds
//
//   - Equal logits are ordered by id, the lower first, so top-k keeps exactly k tokens
//     (or all there are, when fewer are allowed).
//   - Top-k, top-p and min-p always keep the most likely token. Typical-p and XTC may
//     remove it, as that is what they are for; every stage keeps at least one.
//   - Min-p and top-k commute. Min-p and top-p, typical-p and top-p don't.
//   - A draw walks the kept tokens in order of id, so it depends on which they are and not
//     on how they were found: a filter that removes nothing changes nothing.
//   - A NaN logit is never chosen. +Inf, or nothing finite, is [ErrNotFinite]: the model is broken.
//
// # Logprobs
//
// [Logprobs] is the log softmax of the raw logits, before mask, bias, penalties, filters and
// temperature: what the model thinks, comparable across settings. vLLM's default
// (raw_logprobs) and llama.cpp's server (without post_sampling_probs) report the same.
//
// # Where the stages come from
//
//   - repeat penalty: Keskar et al., "CTRL" (2019), section 4.1, with the correction for negative
//     logits that everyone has adopted
//   - frequency and presence penalty: the OpenAI API
//   - top-p: Holtzman et al., "The Curious Case of Neural Text Degeneration" (2019)
//   - typical-p: Meister et al., "Locally Typical Sampling" (2022)
//   - min-p: Nguyen et al., "Turning Up the Heat" (2024)
//   - DRY: p-e-w, oobabooga/text-generation-webui pull request 5677
//   - XTC: p-e-w, oobabooga/text-generation-webui pull request 6335
package sample
