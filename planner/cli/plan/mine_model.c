#include "planner/cli/plan/mine_model.h"

#include <stdio.h>
#include <string.h>

/* A model without --model is planned as this class, which is no published model. */
static const char unnamed[] = "7B";

static int64_t value(const struct wlb_trainer_words *words, enum wlb_setting setting, int64_t otherwise)
{
	return wlb_trainer_words_value(words, setting, otherwise);
}

static int compare_shape(const struct wlb_trainer_words *words, const struct wlb_model *m, struct wlb_error *error)
{
	const struct {
		enum wlb_setting setting;
		int64_t of_model;
	} fields[] = {{WLB_SETTING_LAYERS, m->num_hidden_layers},     {WLB_SETTING_HIDDEN, m->hidden_size},
	              {WLB_SETTING_FFN, m->intermediate_size},        {WLB_SETTING_HEADS, m->num_attention_heads},
	              {WLB_SETTING_KV_HEADS, m->num_key_value_heads}, {WLB_SETTING_HEAD_DIM, m->head_dim}};
	char name[128];
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		int64_t mine = value(words, fields[i].setting, fields[i].of_model);
		wlb_trainer_words_option(words, fields[i].setting, name, sizeof(name));
		if (mine != fields[i].of_model)
			return wlb_fail(error, "%s %lld, but the model of --model has %lld: leave one of them out",
			                name, (long long)mine, (long long)fields[i].of_model);
	}
	return 0;
}

/* The rows of the embedding: Megatron-LM rounds them up so that each tensor-parallel rank has as many. */
static int64_t vocabulary(const struct wlb_trainer_words *words)
{
	int64_t multiple = value(words, WLB_SETTING_VOCABULARY_MULTIPLE, 128) * value(words, WLB_SETTING_TP, 1);
	int64_t rows = value(words, WLB_SETTING_VOCABULARY, 0);
	return value(words, WLB_SETTING_PADDED_VOCABULARY, (rows + multiple - 1) / multiple * multiple);
}

static int check_whole(const struct wlb_trainer_words *words, struct wlb_error *error)
{
	static const char remedy[] = "add it, or give the model by --model";
	static const enum wlb_setting needed[] = {WLB_SETTING_LAYERS, WLB_SETTING_HIDDEN, WLB_SETTING_HEADS};
	if (words->of != WLB_WORDS_OF_MEGATRON || !wlb_trainer_words_have(words, WLB_SETTING_LAYERS))
		return wlb_fail(error, "--compare: the command does not tell the model's shape; give it by --model, "
		                       "such as Llama-3-8B");
	if (wlb_trainer_words_have(words, WLB_SETTING_EXPERTS))
		return wlb_fail(error,
		                "--compare: the shape of experts is not read from the command; give a config.json "
		                "by --model");
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (!wlb_trainer_words_have(words, needed[i]))
			return wlb_trainer_words_lack(words, needed[i], remedy, error);
	if (!wlb_trainer_words_have(words, WLB_SETTING_VOCABULARY) &&
	    !wlb_trainer_words_have(words, WLB_SETTING_PADDED_VOCABULARY))
		return wlb_trainer_words_lack(words, WLB_SETTING_VOCABULARY, remedy, error);
	return 0;
}

int wlb_mine_model(const struct wlb_trainer_words *words, struct wlb_plan_request *request, struct wlb_model *model,
                   struct wlb_error *error)
{
	if (strcmp(request->model, unnamed) != 0)
		return compare_shape(words, model, error);
	if (check_whole(words, error) < 0)
		return -1;
	int gated = (int)value(words, WLB_SETTING_GATED, 0);
	int64_t hidden = value(words, WLB_SETTING_HIDDEN, 0), heads = value(words, WLB_SETTING_HEADS, 0);
	*model = (struct wlb_model){
		.hidden_size = hidden,
		.intermediate_size = value(words, WLB_SETTING_FFN, gated ? 4 * hidden * 2 / 3 / 64 * 64 : 4 * hidden),
		.num_hidden_layers = value(words, WLB_SETTING_LAYERS, 0),
		.num_attention_heads = heads,
		.num_key_value_heads =
			value(words, WLB_SETTING_GROUPED, 0) ? value(words, WLB_SETTING_KV_HEADS, 1) : heads,
		.head_dim = value(words, WLB_SETTING_HEAD_DIM, hidden / heads),
		.vocab_size = vocabulary(words),
		.max_position_embeddings = request->seq_length,
		.rope_theta = 1e4,
		.rms_norm_eps = 1e-5,
		.tie_word_embeddings = !value(words, WLB_SETTING_UNTIED, 0),
		.family = gated ? WLB_FAMILY_LLAMA : WLB_FAMILY_NEMOTRON, /* whose MLP has no gate */
	};
	request->model = "the model of the command";
	return wlb_model_check(model, error) < 0 ? wlb_fail_in(error, "the model of the command behind --") : 0;
}
