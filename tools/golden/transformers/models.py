"""The configurations of the tiny models that goldens.py makes: small widths, and each fact of an architecture that a file can state at a value other than its default."""
from dataclasses import dataclass, field

VOCAB = 264  # three special tokens, 256 bytes, five words
BASE = dict(vocab_size=VOCAB, hidden_size=32, intermediate_size=48, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, head_dim=16,
            max_position_embeddings=512, bos_token_id=1, eos_token_id=2, pad_token_id=0, tie_word_embeddings=False)
WIDE = dict(hidden_size=64, intermediate_size=96, num_hidden_layers=2)  # for those whose head size is hidden_size / num_attention_heads


@dataclass
class Model:
    model_type: str                                   # transformers' name of the architecture
    args: dict                                        # its configuration
    architecture: str = ''                            # what config.json names for the converter; empty: what transformers writes
    others: list = field(default_factory=list)        # changes of args to try in turn where transformers refuses them
    extra: dict = field(default_factory=dict)         # keys that the converter reads and transformers no longer writes
    rename: list = field(default_factory=list)        # patterns of tensor names and what the converter calls them
    converter: dict = field(default_factory=dict)     # attributes of the converter's class
    turn: str = ''                                    # pattern of names of tensors whose last two dimensions the checkpoint of their authors has the other way round
    cls: str = ''                                     # the class of transformers; empty: the causal language model of model_type
    rows: int = 24
    seed: int = 1

    def configurations(self):
        yield dict(self.args)
        for change in self.others:
            yield {k: v for k, v in {**self.args, **change}.items() if v is not None}


def model(model_type, drop=(), architecture='', others=(), extra=None, rename=(), converter=None, cls='', rows=24, seed=1, **kw):
    args = {k: v for k, v in BASE.items() if k not in drop}
    args.update(kw)
    return Model(model_type, args, architecture, list(others), extra or {}, list(rename), converter or {}, cls, rows, seed)


def yarn(factor, original, theta=10000.0, **kw):
    return dict(rope_type='yarn', factor=factor, original_max_position_embeddings=original, rope_theta=theta, **kw)


EXPERTS = dict(moe_intermediate_size=32, num_experts=4, num_experts_per_tok=2)
ROUTED = dict(moe_intermediate_size=32, n_routed_experts=8, num_experts_per_tok=2, n_shared_experts=1, first_k_dense_replace=1)
LATENT = dict(num_key_value_heads=4, q_lora_rank=16, kv_lora_rank=32, qk_rope_head_dim=16, qk_nope_head_dim=16, v_head_dim=16)
MAMBA2 = dict(mamba_n_heads=4, mamba_d_head=16, mamba_n_groups=1, mamba_d_state=16, mamba_d_conv=4, mamba_expand=2)
HYBRID = ['mamba', 'attention', 'mamba']
CONV = ['conv', 'conv', 'full_attention', 'conv']
SLIDE = ['sliding_attention', 'full_attention', 'sliding_attention', 'full_attention']
GEMMA4 = dict(architecture='Gemma4ForCausalLM', num_hidden_layers=4, layer_types=SLIDE, global_head_dim=32, sliding_window=8, tie_word_embeddings=True, vocab_size_per_layer_input=VOCAB,
              enable_moe_block=False)
SHORT, LONG = [1.0, 1.1, 1.2, 1.3, 1.5, 1.7, 1.9, 2.1], [1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0]
LONGROPE = dict(rope_type='longrope', rope_theta=10000.0, short_factor=SHORT, long_factor=LONG, original_max_position_embeddings=32)
PHI3 = dict(WIDE, sliding_window=None, max_position_embeddings=128, original_max_position_embeddings=32)
MSCALE = 1.1832159566199232  # sqrt(1 + ln 4 / ln 32): the factor of cosines and sines that the converter computes for LONGROPE
ODD = dict(hidden_size=80, intermediate_size=72, vocab_size=267, num_attention_heads=5, num_key_value_heads=1, num_hidden_layers=2)
PAIR = dict(hidden_size=32, num_attention_heads=2, num_key_value_heads=1)  # the same at a smaller width


def vl(model_type, cls, text_type, vision, sections, extra=None, turn='', **text):
    rope = dict(rope_type='default', rope_theta=10000.0, mrope_section=sections)
    if 'qwen3' in model_type:
        rope['mrope_interleaved'] = True
    text_config = dict(BASE, model_type=text_type, rope_parameters=rope, **text)
    return Model(model_type, dict(vocab_size=VOCAB, text_config=text_config, vision_config=vision, tie_word_embeddings=False), architecture=cls, cls=cls, extra=extra or {},
                 others=[dict(vocab_size=None)], turn=turn)


QWEN2_TOWER = dict(depth=1, embed_dim=16, hidden_size=64, num_heads=2, mlp_ratio=1, patch_size=4)
QWEN3_TOWER = dict(depth=1, hidden_size=16, intermediate_size=16, num_heads=2, patch_size=4, out_hidden_size=32, num_position_embeddings=16, deepstack_visual_indexes=[0])

MODELS = {
    # facts that a reader of the file can know, of six architectures whose first goldens were computed with others
    'llama4': model('llama4_text', architecture='Llama4ForConditionalGeneration', num_hidden_layers=4, intermediate_size_mlp=48, intermediate_size=32, num_local_experts=4, num_experts_per_tok=1,
                    interleave_moe_layer_step=2, attention_chunk_size=8192, use_qk_norm=True, no_rope_layers=[1, 1, 1, 0]),
    'afmoe': model('afmoe', num_hidden_layers=4, num_shared_experts=1, num_dense_layers=1, sliding_window=8, global_attn_every_n_layers=4, mup_enabled=True, route_scale=1.5, **EXPERTS),
    'minimax-m2': model('minimax_m2', rope_parameters=dict(rope_type='default', rope_theta=5e6, partial_rotary_factor=0.5), num_local_experts=4, num_experts_per_tok=2, intermediate_size=32,
                        extra=dict(rotary_dim=8)),
    'granitehybrid': model('granitemoehybrid', drop=('head_dim',), layer_types=HYBRID, num_local_experts=4, num_experts_per_tok=2, intermediate_size=32,
                           shared_intermediate_size=48, position_embedding_type='nope', attention_multiplier=0.1, embedding_multiplier=6.0, logits_scaling=2.0, residual_multiplier=0.5,
                           tie_word_embeddings=True, extra=dict(layer_types=HYBRID), **MAMBA2, **PAIR),
    'lfm2': model('lfm2', drop=('head_dim',), num_hidden_layers=4, layer_types=CONV, block_multiple_of=32, intermediate_size=96, block_ff_dim=96, conv_L_cache=3, tie_word_embeddings=True, **PAIR),
    'lfm2moe': model('lfm2_moe', drop=('head_dim',), num_hidden_layers=4, layer_types=CONV, conv_L_cache=3, num_dense_layers=1, tie_word_embeddings=True, **EXPERTS, **PAIR),
    # facts that no earlier golden exercises
    'mistral3-temp': model('ministral3', rows=40, rope_parameters=yarn(4.0, 16, 1e6, beta_fast=32.0, beta_slow=1.0, mscale=1.0, mscale_all_dim=0.5, llama_4_scaling_beta=0.1)),
    'gemma4-scale': model('gemma4_text', hidden_size_per_layer_input=0, num_kv_shared_layers=0, final_logit_softcapping=5.0, **GEMMA4),
    'gemma4-keqv': model('gemma4_text', hidden_size_per_layer_input=0, num_kv_shared_layers=0, attention_k_eq_v=True, num_global_key_value_heads=1, **GEMMA4),
    'olmo3-yarn': model('olmo3', drop=('head_dim',), num_hidden_layers=2, hidden_size=64, layer_types=SLIDE[:2], sliding_window=8, rope_parameters=yarn(4.0, 8, 5e5, beta_fast=32.0, beta_slow=1.0)),
    'gemma3-linear': model('gemma3_text', architecture='Gemma3ForCausalLM', num_hidden_layers=6, sliding_window=8, query_pre_attn_scalar=16, tie_word_embeddings=True,
                           rope_parameters=dict(full_attention=dict(rope_type='linear', factor=8.0, rope_theta=1e6), sliding_attention=dict(rope_type='default', rope_theta=10000.0))),
    'nemotron-h-moe': model('nemotron_h', drop=('num_hidden_layers',), hybrid_override_pattern='ME*E', layers_block_type=None, mamba_num_heads=4, mamba_head_dim=16, n_groups=2, ssm_state_size=16,
                            conv_kernel=4, n_routed_experts=8, num_experts_per_tok=2, moe_intermediate_size=32, moe_shared_expert_intermediate_size=40, routed_scaling_factor=2.5, norm_topk_prob=True),
    'nemotron-h-latent': model('nemotron_h', drop=('num_hidden_layers',), hybrid_override_pattern='ME*E', layers_block_type=None, mamba_num_heads=4, mamba_head_dim=16, n_groups=2, ssm_state_size=16,
                               conv_kernel=4, n_routed_experts=8, num_experts_per_tok=2, moe_intermediate_size=32, moe_shared_expert_intermediate_size=40, moe_latent_size=16,
                               routed_scaling_factor=2.5, norm_topk_prob=True),
    'falcon-new': Model('falcon', dict(vocab_size=VOCAB, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_kv_heads=2, new_decoder_architecture=True, parallel_attn=True, bias=False,
                                       alibi=False, bos_token_id=1, eos_token_id=2), extra=dict(num_kv_heads=2)),
    'stablelm-par': model('stablelm', drop=('head_dim',), partial_rotary_factor=0.25, use_qkv_bias=True, use_parallel_residual=True, **WIDE),
    'stablelm-qknorm': model('stablelm', drop=('head_dim',), partial_rotary_factor=0.25, qk_layernorm=True, use_parallel_residual=True, **WIDE),
    'ernie45moe-step2': model('ernie4_5_moe', intermediate_size=64, num_hidden_layers=4, moe_num_experts=4, moe_k=2, moe_intermediate_size=32, moe_num_shared_experts=1, moe_layer_start_index=1, moe_layer_interval=2),
    'phi3-long': model('phi3', rows=24, drop=('head_dim',), rope_parameters=LONGROPE, **PHI3),
    'phi3-long-far': model('phi3', rows=40, drop=('head_dim',), rope_parameters=LONGROPE, **PHI3),
    'phi4-mini': model('phi3', rows=24, drop=('head_dim',), rope_parameters=dict(LONGROPE, short_factor=SHORT[::2], long_factor=LONG[::2], partial_rotary_factor=0.5),
                       others=[dict(partial_rotary_factor=0.5)], **dict(PHI3, tie_word_embeddings=True)),
    'llama-yarn-far': model('llama', rows=32, rope_parameters=yarn(8.0, 16, beta_fast=8.0, beta_slow=1.0)),
    'llama-yarn-factor': model('llama', rows=32, rope_parameters=yarn(4.0, 16, beta_fast=32.0, beta_slow=1.0, attention_factor=1.3)),
    'qwen3-yarn': model('qwen3', rows=32, rope_parameters=yarn(4.0, 16, 1e6)),
    'deepseek-v2-yarn': model('deepseek_v2', rows=32, drop=('head_dim',), num_key_value_heads=4, q_lora_rank=None, kv_lora_rank=32, qk_rope_head_dim=16, qk_nope_head_dim=16, v_head_dim=16, topk_method='greedy',
                              n_group=1, topk_group=1, routed_scaling_factor=1.0, norm_topk_prob=False, rope_parameters=yarn(4.0, 16, beta_fast=32.0, beta_slow=1.0, mscale=0.707, mscale_all_dim=0.707), **ROUTED),
    'deepseek-v3-yarn': model('deepseek_v3', rows=32, drop=('head_dim',), n_group=4, topk_group=2, routed_scaling_factor=2.5, norm_topk_prob=True, extra=dict(scoring_func='sigmoid'),
                              rope_parameters=yarn(4.0, 16, beta_fast=32.0, beta_slow=1.0, mscale=1.0, mscale_all_dim=1.0), **ROUTED, **LATENT),
    'dots1-groups': model('dots1', num_key_value_heads=4, n_group=2, topk_group=1, routed_scaling_factor=2.0, norm_topk_prob=True, extra=dict(scoring_func='sigmoid'), **ROUTED),
    'falcon-h1-norm': model('falcon_h1', hidden_size=64, mamba_d_ssm=64, mamba_rms_norm=True, mamba_norm_before_gate=False, num_hidden_layers=2, **dict(MAMBA2, mamba_expand=1, mamba_n_groups=2)),
    'falcon-mamba': Model('falcon_mamba', dict(vocab_size=VOCAB, hidden_size=32, num_hidden_layers=3, state_size=16, conv_kernel=4, expand=2, time_step_rank=8, tie_word_embeddings=True, bos_token_id=1,
                                               eos_token_id=2, use_mambapy=False)),
    'olmo-clamp': model('olmo', drop=('head_dim',), clip_qkv=0.5, **WIDE),
    'lfm2-bias': model('lfm2', drop=('head_dim',), num_hidden_layers=2, layer_types=CONV[1:3], block_multiple_of=32, intermediate_size=96, block_ff_dim=96, conv_L_cache=3, conv_bias=True,
                       tie_word_embeddings=True, **PAIR),
    'cohere-qknorm': model('cohere', drop=('head_dim',), logit_scale=0.25, use_qk_norm=True, tie_word_embeddings=True, **WIDE),
    'granite-bias': model('granite', drop=('head_dim',), attention_bias=True, mlp_bias=True, embedding_multiplier=12.0, logits_scaling=4.0, residual_multiplier=0.3, attention_multiplier=0.08, **WIDE),
    # architectures without an earlier golden
    'gptneox': model('gpt_neox', drop=('num_key_value_heads', 'head_dim'), rotary_pct=0.25, use_parallel_residual=True, extra=dict(rotary_pct=0.25),
                     others=[dict(rotary_pct=None, rope_parameters=dict(rope_type='default', rope_theta=10000.0, partial_rotary_factor=0.25)), dict(rotary_pct=None)], **WIDE),
    'gptneox-seq': model('gpt_neox', drop=('num_key_value_heads', 'head_dim'), rotary_pct=0.25, use_parallel_residual=False, extra=dict(rotary_pct=0.25),
                         others=[dict(rotary_pct=None, rope_parameters=dict(rope_type='default', rope_theta=10000.0, partial_rotary_factor=0.25)), dict(rotary_pct=None)], **WIDE),
    'phimoe': model('phimoe', architecture='PhiMoEForCausalLM', drop=('head_dim',), num_local_experts=4, num_experts_per_tok=2, attention_bias=True, lm_head_bias=True, sliding_window=None,
                    rename=[(r'\.mlp\.', '.block_sparse_moe.'), (r'\.block_sparse_moe\.router\.', '.block_sparse_moe.gate.')],
                    rope_parameters=dict(LONGROPE, short_mscale=MSCALE, long_mscale=MSCALE), others=[dict(rope_scaling=dict(LONGROPE, short_mscale=MSCALE, long_mscale=MSCALE), rope_parameters=None)],
                    **dict(WIDE, intermediate_size=32, max_position_embeddings=128, original_max_position_embeddings=32)),
    'gemma3n': model('gemma3n_text', architecture='Gemma3nForCausalLM', num_hidden_layers=4, layer_types=SLIDE, sliding_window=8, tie_word_embeddings=True, hidden_size_per_layer_input=16,
                     vocab_size_per_layer_input=VOCAB, num_kv_shared_layers=2, laurel_rank=8, activation_sparsity_pattern=[0.95, 0.7, 0.0, 0.0]),
    'gemma4-e': model('gemma4_text', hidden_size_per_layer_input=16, num_kv_shared_layers=2, final_logit_softcapping=5.0, **GEMMA4),
    'gemma4-e-wide': model('gemma4_text', hidden_size_per_layer_input=16, num_kv_shared_layers=2, use_double_wide_mlp=True, **GEMMA4),
    'deepseek-v32': model('deepseek_v32', drop=('head_dim',), n_group=4, topk_group=2, routed_scaling_factor=2.5, norm_topk_prob=True, index_topk=64, index_head_dim=32, index_n_heads=2,
                          extra=dict(scoring_func='sigmoid', first_k_dense_replace=1), **ROUTED, **LATENT),
    'deepseek-v32-sparse': model('deepseek_v32', drop=('head_dim',), n_group=4, topk_group=2, routed_scaling_factor=2.5, norm_topk_prob=True, index_topk=8, index_head_dim=32, index_n_heads=2,
                                 extra=dict(scoring_func='sigmoid', first_k_dense_replace=1), **ROUTED, **LATENT),
    'glm-dsa': model('glm_moe_dsa', drop=('head_dim',), n_group=1, topk_group=1, routed_scaling_factor=2.5, norm_topk_prob=True, index_topk=64, index_head_dim=32, index_n_heads=2,
                     extra=dict(scoring_func='sigmoid', first_k_dense_replace=1), **ROUTED, **LATENT),
    'kimi-linear': model('kimi_linear', drop=('head_dim', 'num_key_value_heads'), num_hidden_layers=4, num_key_value_heads=4, q_lora_rank=None, kv_lora_rank=32, qk_rope_head_dim=16, qk_nope_head_dim=16, v_head_dim=16,
                         moe_intermediate_size=32, num_experts=4, num_experts_per_token=2, num_shared_experts=1, first_k_dense_replace=1, routed_scaling_factor=2.446, mla_use_nope=True,
                         layer_types=['linear_attention', 'linear_attention', 'full_attention', 'linear_attention'],
                         linear_attn_config=dict(full_attn_layers=[3], kda_layers=[1, 2, 4], head_dim=16, num_heads=4, short_conv_kernel_size=4),
                         others=[dict(num_experts=None, num_experts_per_token=None, num_shared_experts=None, num_local_experts=4, num_experts_per_tok=2, n_shared_experts=1)],
                         extra=dict(linear_attn_config=dict(full_attn_layers=[3], kda_layers=[1, 2, 4], head_dim=16, num_heads=4, short_conv_kernel_size=4), first_k_dense_replace=1, num_experts=4,
                                    num_experts_per_token=2, num_shared_experts=1, num_key_value_heads=4)),
    'mimo2': model('mimo_v2_flash', num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=1, head_dim=24, v_head_dim=16, sliding_window=8, layer_types=['full_attention', 'sliding_attention', 'sliding_attention', 'full_attention'],
                   mlp_layer_types=['dense', 'sparse', 'sparse', 'sparse'], attention_value_scale=0.707, moe_intermediate_size=32, n_routed_experts=4, num_experts_per_tok=2, norm_topk_prob=True,
                   rope_parameters=dict(full_attention=dict(rope_type='default', rope_theta=5e6, partial_rotary_factor=0.334), sliding_attention=dict(rope_type='default', rope_theta=10000.0, partial_rotary_factor=0.334)),
                   architecture='MiMoV2FlashForCausalLM', converter=dict(_n_nextn=0),
                   extra=dict(swa_head_dim=24, swa_v_head_dim=16, swa_num_attention_heads=4, swa_num_key_value_heads=2, topk_method='noaux_tc', hybrid_layer_pattern=[0, 1, 1, 0], layernorm_epsilon=1e-5, attention_value_scale=0.707,
                              scoring_func='sigmoid', n_routed_experts=4,
                              rope_parameters=dict(rope_type='default', rope_theta=5e6, partial_rotary_factor=0.334, sliding_attention=dict(rope_theta=10000.0)))),
    'exaone-moe': model('exaone_moe', num_hidden_layers=4, sliding_window=8, sliding_window_pattern=4, num_shared_experts=1, first_k_dense_replace=1, routed_scaling_factor=2.5, norm_topk_prob=True,
                        n_group=1, topk_group=1, extra=dict(scoring_func='sigmoid'), **EXPERTS),
    'step35': model('step3p5'),
    'qwen2vl': vl('qwen2_vl', 'Qwen2VLForConditionalGeneration', 'qwen2_vl_text', QWEN2_TOWER, [2, 3, 3], **WIDE),
    'qwen3vl': vl('qwen3_vl', 'Qwen3VLForConditionalGeneration', 'qwen3_vl_text', QWEN3_TOWER, [4, 2, 2]),
    'qwen3vlmoe': vl('qwen3_vl_moe', 'Qwen3VLMoeForConditionalGeneration', 'qwen3_vl_moe_text', QWEN3_TOWER, [4, 2, 2], turn=r'experts\.(gate_up|down)_proj$', decoder_sparse_step=1, norm_topk_prob=True, **EXPERTS),
    # widths that are no multiples of a tile, an odd vocabulary, one key head
    'qwen3-odd': model('qwen3', **ODD),
    'phi3-odd': model('phi3', drop=('head_dim',), sliding_window=None, **ODD),
    'qwen2moe-odd': model('qwen2_moe', drop=('head_dim',), shared_expert_intermediate_size=56, norm_topk_prob=False, decoder_sparse_step=1, moe_intermediate_size=40, num_experts=5, num_experts_per_tok=3,
                          **ODD),
}
