#include "planner/cli/plan/compare.h"

#include <stdio.h>
#include <string.h>

#include "common/json_text.h"
#include "common/output/terminal.h"
#include "common/output/wrap.h"
#include "planner/cli/plan/json.h"
#include "planner/cli/plan/report.h"
#include "planner/cli/plan/time.h"

/* DIFFERENCES options of at most 128 bytes and values of at most 80 fit in TEXT_BYTES. */
enum { DIFFERENCES = 19, TEXT_BYTES = 4096, INDENT = 2 };

static const double near_equal = 1.01; /* of the best step: the search takes such plans as equal, too */

/* A setting of both plans. */
struct difference {
	char option[128]; /* of the trainer, or what it is where there is none */
	char mine[WLB_RECOMPUTE_TEXT_BYTES], best[WLB_RECOMPUTE_TEXT_BYTES];
	int given; /* the command has it */
};

struct differences {
	const struct wlb_trainer_words *words;
	struct difference found[DIFFERENCES];
	int count;
};

/* Sets the plan of a command whose plan does not run as it would be with more memory, where that is what it lacks. */
static void plan_without_limit(const struct wlb_plan_request *request, struct wlb_plan_input *input,
                               struct wlb_comparison *comparison)
{
	const double most_bytes = 1e15, before = input->machine.memory_bytes;
	struct wlb_explanation larger = {.can_run = 0};
	input->machine.memory_bytes = most_bytes; /* wlb_machine_check takes no more */
	wlb_explain_held(request, input, &comparison->mine.fixed, &larger);
	input->machine.memory_bytes = before;
	comparison->why.candidate = larger.candidate;
}

int wlb_compare(const struct wlb_plan_request *request, struct wlb_plan_input *input, struct wlb_comparison *comparison,
                struct wlb_error *error)
{
	const struct wlb_mine *mine = &comparison->mine;
	const struct wlb_cost_options before = input->cost;
	struct wlb_plan_request own = *request;
	own.zero_stage = mine->zero_stage;
	input->cost = mine->cost;
	comparison->why =
		(struct wlb_explanation){.asked = {mine->fixed.tp, mine->fixed.cp, mine->fixed.pp, mine->fixed.dp}};
	wlb_explain_held(&own, input, &mine->fixed, &comparison->why);
	if (!comparison->why.can_run)
		plan_without_limit(&own, input, comparison);
	input->cost = before;
	return wlb_near_find(request, input, wlb_layout_ranks(&comparison->why.asked), &comparison->near, error);
}

/* Whether no other plan is worth a change. */
static int is_near_best(const struct wlb_comparison *comparison, const struct wlb_candidate *best)
{
	return comparison->why.can_run && comparison->why.candidate.step_s <= near_equal * best->step_s;
}

static struct difference *add(struct differences *list, enum wlb_setting setting, const char *what)
{
	struct difference *d = &list->found[list->count++];
	wlb_trainer_words_option(list->words, setting, d->option, sizeof(d->option));
	if (what != NULL || d->option[0] == '\0')
		snprintf(d->option, sizeof(d->option), "%s", what != NULL ? what : "chunks of a stage");
	d->given = wlb_trainer_words_have(list->words, setting);
	return d;
}

static struct difference *add_number(struct differences *list, enum wlb_setting setting, int mine, int best)
{
	struct difference *d = add(list, setting, NULL);
	snprintf(d->mine, sizeof(d->mine), "%d", mine);
	snprintf(d->best, sizeof(d->best), "%d", best);
	return d;
}

static void add_switch(struct differences *list, enum wlb_setting setting, const char *what, int mine, int best)
{
	struct difference *d = add(list, setting, what);
	strcpy(d->mine, mine ? "on" : "off");
	strcpy(d->best, best ? "on" : "off");
}

static int has_less_layers(const struct wlb_plan *plan)
{
	return plan->account_for_embedding > 1 || plan->account_for_loss > 1;
}

/* Writes the layers of a stage where the plan gives them; without it the trainer divides them. */
static void write_layers(const struct wlb_plan *plan, const struct wlb_model *model, int32_t stage, char *text,
                         size_t size)
{
	if (has_less_layers(plan))
		snprintf(text, size, "%d", (int)wlb_plan_stage_layers(plan, model, stage));
	else
		snprintf(text, size, "%s", "none");
}

/* How layers are divided among stages: what counts as one, and the layers of the first and the last stage where one of
 * them has several less than the others. */
static void list_stages(struct differences *list, const struct wlb_search_fixed *f, const struct wlb_model *model,
                        const struct wlb_plan *best)
{
	static const enum wlb_setting ends[] = {WLB_SETTING_FIRST_LAYERS, WLB_SETTING_LAST_LAYERS};
	const struct wlb_plan own = {.layout = {f->tp, f->cp, f->pp, f->dp},
	                             .interleave = f->interleave,
	                             .account_for_embedding = f->account_for_embedding,
	                             .account_for_loss = f->account_for_loss};
	int less = has_less_layers(&own), best_less = has_less_layers(best);
	add_switch(list, WLB_SETTING_EMBEDDING, NULL, !less && own.account_for_embedding,
	           !best_less && best->account_for_embedding);
	add_switch(list, WLB_SETTING_LOSS, NULL, !less && own.account_for_loss, !best_less && best->account_for_loss);
	for (int end = 0; (less || best_less) && end < 2; end++) {
		struct difference *d = add(list, ends[end], NULL);
		write_layers(&own, model, end == 0 ? 0 : f->pp - 1, d->mine, sizeof(d->mine));
		write_layers(best, model, end == 0 ? 0 : best->layout.pp - 1, d->best, sizeof(d->best));
	}
}

/* The layout, the batch and what is recomputed. */
static void list_plans(struct differences *list, const struct wlb_mine *mine, const struct wlb_plan_request *request,
                       const struct wlb_model *model, const struct wlb_plan *best)
{
	const struct wlb_search_fixed *f = &mine->fixed;
	const struct wlb_plan own = {.recompute = (enum wlb_recompute)f->recompute,
	                             .recompute_layers = f->recompute_layers};
	int local = mine->words.of == WLB_WORDS_OF_TORCHTITAN && f->pp == 1;
	add_number(list, WLB_SETTING_TP, f->tp, best->layout.tp);
	add_number(list, WLB_SETTING_CP, f->cp, best->layout.cp);
	add_number(list, WLB_SETTING_PP, f->pp, best->layout.pp);
	if (f->ep > 1 || best->ep > 1)
		add_number(list, WLB_SETTING_EP, f->ep, best->ep > 1 ? best->ep : 1);
	add_number(list, WLB_SETTING_INTERLEAVE, f->interleave, best->interleave);
	add_number(list, local ? WLB_SETTING_LOCAL_BATCH : WLB_SETTING_MICRO_BATCH, f->micro_batch_windows,
	           request->global_batch / (best->layout.dp * best->micro_batches));
	add_number(list, WLB_SETTING_WINDOW, request->seq_length, request->seq_length)->given = mine->window_given;
	add_number(list, WLB_SETTING_GLOBAL_BATCH, request->global_batch, request->global_batch)->given =
		mine->batch_given;
	struct difference *d = add(list, WLB_SETTING_RECOMPUTE, NULL);
	wlb_recompute_format(&own, d->mine, sizeof(d->mine));
	wlb_recompute_format(best, d->best, sizeof(d->best));
	if (mine->words.of == WLB_WORDS_OF_TORCHTITAN)
		return;
	list_stages(list, f, model, best);
	add_switch(list, WLB_SETTING_OPTIMIZER_SHARDED, NULL, mine->zero_stage > 0, best->zero_stage > 0);
}

/* What the trainer overlaps and divides; nothing of TorchTitan, which has no option for it. */
static void list_costs(struct differences *list, const struct wlb_mine *mine, const struct wlb_cost_options *best,
                       int best_tp)
{
	const struct wlb_cost_options *own = &mine->cost;
	if (mine->words.of == WLB_WORDS_OF_TORCHTITAN)
		return;
	add_switch(list, WLB_SETTING_OVERLAP_GRADIENTS, NULL, own->overlap_gradients, best->overlap_gradients);
	add_switch(list, WLB_SETTING_OVERLAP_PARAMETERS, NULL, own->overlap_parameters, best->overlap_parameters);
	add_switch(list, WLB_SETTING_OVERLAP_PP, "sends between stages beside computation", own->overlap_pp,
	           best->overlap_pp);
	if (best_tp == 1)
		return;
	add_switch(list, WLB_SETTING_OVERLAP_TP, NULL, own->tp_overlap.forward > 0.0, best->tp_overlap.forward > 0.0);
	add_switch(list, WLB_SETTING_SEQUENCE_PARALLEL, NULL, !own->whole_rows, !best->whole_rows);
}

static struct differences list_all(const struct wlb_comparison *comparison, const struct wlb_plan_request *request,
                                   const struct wlb_plan_input *input, const struct wlb_candidate *best)
{
	struct differences list = {.words = &comparison->mine.words};
	list_plans(&list, &comparison->mine, request, &input->model, &best->plan);
	list_costs(&list, &comparison->mine, &input->cost, best->plan.layout.tp);
	return list;
}

/* Prints the rate, and the parts of the step that take a hundredth of it or more. */
static void print_shares(const struct wlb_candidate *this)
{
	const struct wlb_sim_time *time = &this->time;
	char text[TEXT_BYTES];
	size_t used = wlb_text_format(text, sizeof(text), "%.0f tokens/s, MFU %.1f%%; of its step:", this->tokens_per_s,
	                              100.0 * this->utilization);
	int count = 0;
	for (int i = 0; i < WLB_TIME_PARTS; i++)
		if (wlb_time_part(time, i) >= 0.01 * time->step_s)
			used += wlb_text_format(text + used, sizeof(text) - used, "%s %s %.1f%%",
			                        count++ > 0 ? "," : "", wlb_time_words(i),
			                        100.0 * wlb_time_part(time, i) / time->step_s);
	wlb_wrap_print(text, INDENT, wlb_terminal_columns(), stdout);
}

static void print_plan(const struct wlb_comparison *comparison, const struct wlb_candidate *best)
{
	const struct wlb_candidate *this = &comparison->why.candidate;
	char layout[64];
	wlb_layout_format(&comparison->why.asked, layout, sizeof(layout));
	printf("\nThe command's plan: %s\n", layout);
	if (!comparison->why.can_run)
		wlb_wrap_print(comparison->why.reason, INDENT, wlb_terminal_columns(), stdout);
	if (this->step_s == 0.0)
		return;
	wlb_candidate_print_beside(comparison->why.can_run ? "runs" : "would run with more memory", this, best);
	wlb_near_print(&comparison->near);
	print_shares(this);
	if (is_near_best(comparison, best))
		puts("  no plan has a step that is more than 1% shorter: keep it");
}

static void print_unread(const struct wlb_trainer_words *words)
{
	char text[TEXT_BYTES];
	size_t used = wlb_text_format(text, sizeof(text), "not looked at:");
	for (int i = 0; i < words->unread_count && i < WLB_WORDS_UNREAD_MAX; i++)
		used += wlb_text_format(text + used, sizeof(text) - used, "%s %.*s", i > 0 ? "," : "",
		                        words->unread[i].bytes, words->unread[i].text);
	if (words->unread_count > WLB_WORDS_UNREAD_MAX)
		wlb_text_format(text + used, sizeof(text) - used, " and %d more",
		                words->unread_count - WLB_WORDS_UNREAD_MAX);
	if (words->unread_count > 0)
		wlb_wrap_print(text, INDENT, wlb_terminal_columns(), stdout);
}

static void print_defaults(const struct differences *list)
{
	char text[TEXT_BYTES];
	size_t used = wlb_text_format(text, sizeof(text), "not given, so as the trainer has it:");
	int count = 0;
	for (int i = 0; i < list->count; i++)
		if (!list->found[i].given)
			used += wlb_text_format(text + used, sizeof(text) - used, "%s %s %s", count++ > 0 ? "," : "",
			                        list->found[i].option, list->found[i].mine);
	if (count > 0)
		wlb_wrap_print(text, INDENT, wlb_terminal_columns(), stdout);
}

void wlb_compare_print(const struct wlb_comparison *comparison, const struct wlb_plan_request *request,
                       const struct wlb_plan_input *input, const struct wlb_candidate *best)
{
	const struct differences list = list_all(comparison, request, input, best);
	print_plan(comparison, best);
	if (!is_near_best(comparison, best))
		for (int i = 0; i < list.count; i++)
			if (strcmp(list.found[i].mine, list.found[i].best) != 0)
				printf("  change %s from %s to %s\n", list.found[i].option, list.found[i].mine,
				       list.found[i].best);
	print_defaults(&list);
	print_unread(&comparison->mine.words);
}

/* Lists of what differs and what was not looked at. */
static int set_lists(json_t *object, const struct differences *list)
{
	const struct wlb_trainer_words *words = list->words;
	json_t *settings = json_array(), *unread = json_array();
	char name[128];
	int rc = 0;
	for (int i = 0; i < list->count; i++)
		rc |= json_array_append_new(settings, json_pack("{s:o, s:s, s:s, s:b}", "option",
		                                                wlb_json_text(list->found[i].option), "command",
		                                                list->found[i].mine, "best", list->found[i].best,
		                                                "given", list->found[i].given));
	for (int i = 0; i < words->unread_count && i < WLB_WORDS_UNREAD_MAX; i++) {
		wlb_text_format(name, sizeof(name), "%.*s", words->unread[i].bytes, words->unread[i].text);
		rc |= json_array_append_new(unread, wlb_json_text(name));
	}
	rc |= json_object_set_new(object, "settings", settings);
	rc |= json_object_set_new(object, "not_looked_at", unread);
	return rc | json_object_set_new(object, "not_looked_at_count", json_integer(words->unread_count));
}

json_t *wlb_compare_to_json(const struct wlb_comparison *comparison, const struct wlb_plan_request *request,
                            const struct wlb_plan_input *input, const struct wlb_candidate *best)
{
	const struct differences list = list_all(comparison, request, input, best);
	json_t *object = wlb_explanation_to_json(&comparison->why);
	if (object == NULL)
		return NULL;
	int rc = set_lists(object, &list);
	rc |= json_object_set_new(object, "uncertainty", wlb_near_to_json(&comparison->near));
	if (comparison->why.candidate.step_s > 0.0)
		rc |= json_object_set_new(object, "step_over_best",
		                          json_real(comparison->why.candidate.step_s / best->step_s));
	if (rc == 0)
		return object;
	json_decref(object);
	return NULL;
}
