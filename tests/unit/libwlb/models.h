/* Published models, by the values of their config.json. */
#ifndef TESTS_UNIT_LIBWLB_MODELS_H
#define TESTS_UNIT_LIBWLB_MODELS_H

#include "libwlb/wlb.h"

static const struct wlb_model llama_2_7b = {.hidden_size = 4096,
                                            .intermediate_size = 11008,
                                            .num_hidden_layers = 32,
                                            .num_attention_heads = 32,
                                            .num_key_value_heads = 32,
                                            .head_dim = 128,
                                            .vocab_size = 32000,
                                            .max_position_embeddings = 4096,
                                            .rope_theta = 10000.0,
                                            .rms_norm_eps = 1e-5};

static const struct wlb_model llama_3_8b = {.hidden_size = 4096,
                                            .intermediate_size = 14336,
                                            .num_hidden_layers = 32,
                                            .num_attention_heads = 32,
                                            .num_key_value_heads = 8,
                                            .head_dim = 128,
                                            .vocab_size = 128256,
                                            .max_position_embeddings = 8192,
                                            .rope_theta = 500000.0,
                                            .rms_norm_eps = 1e-5};

static const struct wlb_model mixtral_8x7b = {.family = WLB_FAMILY_MIXTRAL,
                                              .hidden_size = 4096,
                                              .intermediate_size = 14336,
                                              .num_experts = 8,
                                              .num_experts_per_tok = 2,
                                              .num_hidden_layers = 32,
                                              .num_attention_heads = 32,
                                              .num_key_value_heads = 8,
                                              .head_dim = 128,
                                              .vocab_size = 32000,
                                              .max_position_embeddings = 32768,
                                              .rope_theta = 1000000.0,
                                              .rms_norm_eps = 1e-5};

static const struct wlb_model deepseek_v3 = {.family = WLB_FAMILY_DEEPSEEK_V3,
                                             .hidden_size = 7168,
                                             .intermediate_size = 2048,
                                             .shared_intermediate_size = 2048,
                                             .dense_layers = 3,
                                             .dense_intermediate_size = 18432,
                                             .num_experts = 256,
                                             .num_experts_per_tok = 8,
                                             .num_hidden_layers = 61,
                                             .num_attention_heads = 128,
                                             .num_key_value_heads = 128,
                                             .head_dim = 192,
                                             .q_lora_rank = 1536,
                                             .kv_lora_rank = 512,
                                             .qk_rope_head_dim = 64,
                                             .v_head_dim = 128,
                                             .vocab_size = 129280,
                                             .max_position_embeddings = 163840,
                                             .rope_theta = 10000.0,
                                             .rms_norm_eps = 1e-6};

#endif
