/* Checks the values that the caller of a search holds fixed. */
#include <stdio.h>

#include "libwlb/layout/search_state.h"

/* Appends "name=value" where the value is fixed. */
static void append(char *text, size_t size, const char *name, long long value)
{
	size_t used = 0;
	while (text[used] != '\0')
		used++;
	if (value > 0)
		snprintf(text + used, size - used, "%s%s=%lld", used > 0 ? "," : "", name, value);
}

/* "tp=2,pp=4": all that is fixed. */
static void list_fixed(const struct wlb_search_fixed *fixed, char *text, size_t size)
{
	text[0] = '\0';
	append(text, size, "tp", fixed->tp);
	append(text, size, "cp", fixed->cp);
	append(text, size, "pp", fixed->pp);
	append(text, size, "dp", fixed->dp);
	append(text, size, "ep", fixed->ep);
	append(text, size, "interleave", fixed->interleave);
	append(text, size, "micro-batch-size", fixed->micro_batch_windows);
}

static int check_most(const char *name, int64_t value, int64_t most, const char *what, struct wlb_error *error)
{
	if (value >= 0 && value <= most)
		return 0;
	return wlb_fail(error, "%s=%lld is fixed: it must be from 1 to %s, %lld", name, (long long)value, what,
	                (long long)most);
}

static int splits_heads(const struct wlb_search *search, int tp)
{
	const struct wlb_layout split = {.tp = tp, .cp = 1, .pp = 1, .dp = 1};
	return wlb_layout_check(&split, NULL, &search->model, NULL) == 0;
}

/* Names, where tp does not split the heads, the nearest values that do and for which a node has GPUs. */
static int check_tp(const struct wlb_search *search, struct wlb_error *error)
{
	const struct wlb_model *model = &search->model;
	int tp = search->options.fixed.tp, below = tp, above = tp;
	if (tp < 1 || splits_heads(search, tp))
		return 0;
	while (!splits_heads(search, below)) /* 1 always does */
		below--;
	while (above <= search->most_usable && !splits_heads(search, above))
		above++;
	char more[32] = "";
	if (above <= search->most_usable)
		snprintf(more, sizeof(more), " or tp=%d", above);
	return wlb_fail(error,
	                "tp=%d is fixed: it must divide num_attention_heads, %lld, and divide num_key_value_heads, "
	                "%lld, or be a multiple of it; use tp=%d%s",
	                tp, (long long)model->num_attention_heads, (long long)model->num_key_value_heads, below, more);
}

int wlb_search_check_fixed(const struct wlb_search *search, struct wlb_error *error)
{
	const struct wlb_search_fixed *fixed = &search->options.fixed;
	const struct wlb_model *model = &search->model;
	if (check_most("tp", fixed->tp, search->most_usable, "the usable GPUs of a node", error) < 0 ||
	    check_most("cp", fixed->cp, search->gpus, "the usable GPUs", error) < 0 ||
	    check_most("pp", fixed->pp, model->num_hidden_layers, "num_hidden_layers", error) < 0 ||
	    check_most("dp", fixed->dp, search->options.global_batch, "--global-batch-size", error) < 0 ||
	    check_most("ep", fixed->ep, model->num_experts > 0 ? model->num_experts : 1,
	               "num_experts, or 1 without experts", error) < 0 ||
	    check_most("interleave", fixed->interleave, model->num_hidden_layers, "num_hidden_layers", error) < 0 ||
	    check_most("micro-batch-size", fixed->micro_batch_windows, search->options.global_batch,
	               "--global-batch-size", error) < 0 ||
	    check_tp(search, error) < 0)
		return -1;
	int embedding = fixed->account_for_embedding, loss = fixed->account_for_loss,
	    layers = (int)model->num_hidden_layers;
	int has_more = embedding > 1 || loss > 1;
	if (embedding < -1 || loss < -1 || embedding >= layers || loss >= layers ||
	    (has_more && (embedding < 0 || loss < 0 || fixed->interleave != 1 || fixed->pp < 2)))
		return wlb_fail(
			error,
			"account_for_embedding is %d, account_for_loss %d: each must be -1, 0 or 1, or both 0 to %d "
			"with interleave 1 and pp above 1",
			embedding, loss, layers - 1);
	if (fixed->shared_head < -1 || fixed->shared_head > 1)
		return wlb_fail(error, "shared_head is %d: it must be -1, 0 or 1", fixed->shared_head);
	if (fixed->recompute != -1 &&
	    wlb_recompute_set_check((enum wlb_recompute)fixed->recompute, model, &search->options.cost, error) < 0)
		return -1;
	if (fixed->recompute_layers < 0 || (fixed->recompute_layers > 0 && fixed->recompute != WLB_RECOMPUTE_FULL))
		return wlb_fail(error, "recompute_layers %d is fixed: it must be positive, and recompute full",
		                fixed->recompute_layers);
	/* The factors that are free are 1 at least. */
	const struct wlb_layout least = {fixed->tp > 0 ? fixed->tp : 1, fixed->cp > 0 ? fixed->cp : 1,
	                                 fixed->pp > 0 ? fixed->pp : 1, fixed->dp > 0 ? fixed->dp : 1};
	double product = (double)least.tp * least.cp * least.pp * least.dp;
	char text[160];
	list_fixed(fixed, text, sizeof(text));
	if (product > search->gpus)
		return wlb_fail(error, "%s is fixed: its product is %.0f and there are %d usable GPUs", text, product,
		                search->gpus);
	if (wlb_layout_check(&least, NULL, model, error) < 0)
		return wlb_fail_in(error, "%s is fixed", text);
	if (fixed->interleave > 1 && fixed->pp == 1)
		return wlb_fail(error, "%s is fixed: interleave above 1 needs pp above 1", text);
	return 0;
}

/* The rules by which a trainer divides layers, batch and window. */
static void list_rules(const struct wlb_search *search, char *text, size_t size)
{
	const struct wlb_search_options *o = &search->options;
	int64_t chunk = search->machine.attention_tile_tokens, cp = o->seq_length / (2 * chunk);
	int worker = o->cost.trainer == WLB_COST_WORKER;
	snprintf(
		text, size,
		"pp x interleave must %s num_hidden_layers, %lld, dp%s %s global_batch_size, %d, and cp %s %lld, since "
		"seq_length, %lld, is cut into 2 x cp chunks of at least %lld tokens%s%s",
		worker ? "not exceed" : "divide", (long long)search->model.num_hidden_layers,
		worker ? "" : " x micro_batch_size", worker ? "not" : "must divide", o->global_batch,
		worker ? "not" : "must not exceed", (long long)(cp > 1 ? cp : 1), (long long)o->seq_length,
		(long long)chunk, worker ? "" : " without a remainder",
		search->model.num_experts > 0 ? ", and ep must divide num_experts and dp x cp" : "");
}

int wlb_search_fail_fixed(const struct wlb_search *search, int32_t most, struct wlb_error *error)
{
	char text[160], rules[448], remedy[128] = "";
	list_fixed(&search->options.fixed, text, sizeof(text));
	list_rules(search, rules, sizeof(rules));
	if (most > 0)
		snprintf(remedy, sizeof(remedy),
		         "; none has a rank on every GPU: start %d ranks, or use wlb run, which leaves ranks idle",
		         most);
	return wlb_fail(error, "no layout of %d GPUs%s%s%s: tp must divide num_attention_heads, %lld, %s%s",
	                search->gpus, text[0] != '\0' ? " has " : "", text, text[0] != '\0' ? ", which is fixed" : "",
	                (long long)search->model.num_attention_heads, rules, remedy);
}
