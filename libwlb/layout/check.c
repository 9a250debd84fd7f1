/* The rules of layouts and plans, each checked in one place: whether a layout can run on the given ranks and split the
 * model, and whether a plan can run. */
#include "libwlb/wlb.h"

#include <stdarg.h>
#include <stdio.h>

static int refuse(const struct wlb_layout *layout, struct wlb_error *error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int refuse(const struct wlb_layout *layout, struct wlb_error *error, const char *format, ...)
{
	char text[64], reason[512];
	va_list arguments;
	wlb_layout_format(layout, text, sizeof(text));
	va_start(arguments, format);
	vsnprintf(reason, sizeof(reason), format, arguments);
	va_end(arguments);
	return wlb_fail(error, "layout %s: %s", text, reason);
}

/* The first node whose number of ranks is no multiple of tp, or -1. NULL allowed. */
static int uneven_node(const struct wlb_nodes *nodes, int tp)
{
	for (int node = 0; nodes != NULL && node < nodes->count; node++)
		if (wlb_nodes_ranks_on(nodes, node) % tp != 0)
			return node;
	return -1;
}

static int divides_heads(const struct wlb_model *model, int tp)
{
	return model == NULL || model->num_attention_heads % tp == 0;
}

/* A rank holds whole key and value heads, or a whole number of ranks hold copies of one. */
static int divides_key_heads(const struct wlb_model *model, int tp)
{
	return model == NULL || model->num_key_value_heads % tp == 0 || tp % model->num_key_value_heads == 0;
}

/* "1, 2 or 4": the values of tp that are allowed, 8 at most; 1 always is. */
static void list_tp(const struct wlb_nodes *nodes, const struct wlb_model *model, char *text, size_t size)
{
	int allowed[8] = {1}, count = 1;
	int64_t most = nodes != NULL ? wlb_nodes_ranks_on(nodes, 0) : model->num_attention_heads;
	for (int tp = 2; tp <= most && count < 8; tp++)
		if (divides_heads(model, tp) && divides_key_heads(model, tp) && uneven_node(nodes, tp) < 0)
			allowed[count++] = tp;
	size_t length = 0;
	for (int i = 0; i < count; i++) {
		const char *separator = i == 0 ? "" : i == count - 1 ? " or " : ", ";
		length += (size_t)snprintf(text + length, size - length, "%s%d", separator, allowed[i]);
	}
}

static int check_ranks(const struct wlb_layout *layout, const struct wlb_nodes *nodes, struct wlb_error *error)
{
	/* Each factor may have 6 digits: more than 64 bits hold. */
	double product = (double)layout->tp * layout->cp * layout->pp * layout->dp;
	long long ranks = (long long)wlb_nodes_ranks(nodes);
	if (product == (double)ranks)
		return 0;
	return refuse(layout, error,
	              "tp x cp x pp x dp is %.0f and must be the %lld ranks there are; start as many, or leave dp out "
	              "where tp x cp x pp divides %lld",
	              product, ranks, ranks);
}

static int check_tp(const struct wlb_layout *layout, const struct wlb_nodes *nodes, const struct wlb_model *model,
                    struct wlb_error *error)
{
	int tp = layout->tp, node = uneven_node(nodes, tp);
	if (divides_heads(model, tp) && divides_key_heads(model, tp) && node < 0)
		return 0;
	char remedy[128];
	list_tp(nodes, model, remedy, sizeof(remedy));
	if (!divides_heads(model, tp))
		return refuse(layout, error, "tp must divide num_attention_heads, %lld; use tp=%s",
		              (long long)model->num_attention_heads, remedy);
	if (!divides_key_heads(model, tp))
		return refuse(layout, error,
		              "one of tp and num_key_value_heads, %lld, must divide the other; use tp=%s",
		              (long long)model->num_key_value_heads, remedy);
	char name[32];
	snprintf(name, sizeof(name), "node %d", node + 1);
	return refuse(layout, error, "tp must divide the ranks of each node, and %.200s has %d; use tp=%s",
	              nodes->names != NULL ? nodes->names[node] : name, wlb_nodes_ranks_on(nodes, node), remedy);
}

int wlb_layout_check(const struct wlb_layout *layout, const struct wlb_nodes *nodes, const struct wlb_model *model,
                     struct wlb_error *error)
{
	if (layout->tp < 1 || layout->cp < 1 || layout->pp < 1 || layout->dp < 1)
		return refuse(layout, error, "each way to split must be at least 1");
	if ((nodes != NULL && check_ranks(layout, nodes, error) < 0) || check_tp(layout, nodes, model, error) < 0)
		return -1;
	if (model != NULL && layout->pp > model->num_hidden_layers)
		return refuse(layout, error, "pp must not exceed num_hidden_layers, %lld",
		              (long long)model->num_hidden_layers);
	return 0;
}

static int refuse_plan(const struct wlb_plan *plan, const char *rule, struct wlb_error *error)
{
	return refuse(&plan->layout, error, "with interleave=%d, micro_batches=%d, zero=%d: %s", plan->interleave,
	              plan->micro_batches, plan->zero_stage, rule);
}

/* Where more than one layer counts, the stage that has less keeps a layer, and others are of equal length. */
static int check_accounts(const struct wlb_plan *plan, const struct wlb_model *model, struct wlb_error *error)
{
	int32_t embedding = plan->account_for_embedding, loss = plan->account_for_loss, pp = plan->layout.pp;
	int64_t slots = model->num_hidden_layers + embedding + loss;
	int is_one = embedding >= 0 && embedding <= 1 && loss >= 0 && loss <= 1;
	if (is_one ||
	    (embedding >= 0 && loss >= 0 && embedding < model->num_hidden_layers && loss < model->num_hidden_layers &&
	     plan->interleave == 1 && pp > 1 && slots % pp == 0 && embedding < slots / pp && loss < slots / pp))
		return 0;
	return refuse_plan(
		plan,
		"account_for_embedding and account_for_loss must be 0 or 1, or, with interleave 1 and pp "
		"above 1, less than the layers of a stage, where pp divides their sum with num_hidden_layers",
		error);
}

int wlb_plan_check(const struct wlb_plan *plan, const struct wlb_model *model, struct wlb_error *error)
{
	const struct wlb_layout *l = &plan->layout;
	if (wlb_layout_check(l, NULL, model, error) < 0)
		return -1;
	if (l->tp > 1 << 20 || l->cp > 1 << 20 || l->pp > 1 << 12 || l->dp > 1 << 20 ||
	    (double)l->tp * l->cp * l->pp * l->dp > 1 << 20)
		return refuse_plan(plan, "tp x cp x pp x dp must be at most 1048576 GPUs", error);
	if (check_accounts(plan, model, error) < 0)
		return -1;
	if (plan->interleave < 1 || (int64_t)l->pp * plan->interleave > model->num_hidden_layers +
	                                                                        plan->account_for_embedding +
	                                                                        plan->account_for_loss)
		return refuse_plan(plan,
		                   "pp x interleave must be from 1 to num_hidden_layers, and one more for each of "
		                   "embedding and loss that is accounted for as a layer",
		                   error);
	if (plan->micro_batches < 1 || (double)plan->micro_batches * l->dp > 1 << 24)
		return refuse_plan(plan, "micro_batches x dp must be from 1 to 16777216", error);
	if (plan->interleave > 1 && (l->pp == 1 || plan->micro_batches % l->pp != 0))
		return refuse_plan(plan, "interleave above 1 needs pp above 1 and micro_batches a multiple of pp",
		                   error);
	if (plan->zero_stage < 0 || plan->zero_stage > 3)
		return refuse_plan(plan, "zero must be 0 to 3", error);
	if (plan->zero_stage > 1 && l->pp > 1)
		return refuse_plan(
			plan,
			"zero 2 and 3 need pp 1: a pipeline keeps gradients over its micro-batches; use zero 1 or pp 1",
			error);
	if (wlb_recompute_set_check(plan->recompute, model, NULL, error) < 0)
		return -1;
	if (plan->recompute_layers < 0)
		return refuse_plan(plan, "recompute_layers must not be negative", error);
	if (plan->shared_head < 0 || plan->shared_head > 1 || (plan->shared_head == 1 && l->pp == 1))
		return refuse_plan(plan, "shared_head must be 0 or 1, and 1 only with pp above 1", error);
	if (plan->dynamic_cp < 0 || plan->dynamic_cp > l->dp * l->cp ||
	    (plan->dynamic_cp > 0 && (double)plan->micro_batches * l->dp * l->cp > 1 << 20))
		return refuse_plan(plan,
		                   "dynamic_cp must be from 0 to dp x cp, and above 0 micro_batches x dp x cp at most "
		                   "1048576",
		                   error);
	if (plan->ep < 0 || (plan->ep > 1 && (model->num_experts == 0 || model->num_experts % plan->ep != 0 ||
	                                      l->dp * l->cp % plan->ep != 0)))
		return refuse_plan(plan, "ep must divide num_experts and dp x cp, and be 1 without experts", error);
	return 0;
}
