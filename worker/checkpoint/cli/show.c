/* wlb ckpt show */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/output/printable.h"
#include "common/show.h"
#include "worker/checkpoint/cli/commands.h"
#include "worker/checkpoint/cli/summary.h"
#include "worker/checkpoint/cli/target.h"
#include "worker/checkpoint/manifest.h"

struct request {
	const char *path;
	bool json;
};

/* In what the model differs from Llama 1. */
static void print_positions(const struct wlb_model *m)
{
	const struct wlb_rope_scaling *s = &m->rope_scaling;
	if (s->type != WLB_ROPE_DEFAULT)
		printf("              rope_type %s, factor %g", wlb_rope_type_name(s->type), s->factor);
	if (s->original_max_position_embeddings > 0.0)
		printf(", original_max_position_embeddings %g", s->original_max_position_embeddings);
	if (s->type != WLB_ROPE_DEFAULT)
		printf("\n");
	if (m->rotary_dim > 0)
		printf("              of each head %lld elements are rotated\n", (long long)m->rotary_dim);
	if (m->no_rope_layer_interval > 0)
		printf("              no_rope_layer_interval %lld\n", (long long)m->no_rope_layer_interval);
	long long windows = 0;
	for (int64_t l = 0; l < m->num_hidden_layers; l++)
		windows += wlb_model_layer_window(m, l) > 0;
	if (windows > 0)
		printf("              sliding_window %lld in %lld of %lld layers\n", (long long)m->sliding_window,
		       windows, (long long)m->num_hidden_layers);
	if (m->rope_local_base_freq > 0.0)
		printf("              rope_local_base_freq %g\n", m->rope_local_base_freq);
}

static void print_caps(const struct wlb_model *m)
{
	if (m->query_pre_attn_scalar > 0.0)
		printf("              query_pre_attn_scalar %g", m->query_pre_attn_scalar);
	if (m->attn_logit_softcapping > 0.0)
		printf(", attn_logit_softcapping %g", m->attn_logit_softcapping);
	if (m->final_logit_softcapping > 0.0)
		printf(", final_logit_softcapping %g", m->final_logit_softcapping);
	if (m->query_pre_attn_scalar > 0.0)
		printf("\n");
}

static void print_model(const struct wlb_model *m)
{
	printf("  model       %s, hidden_size %lld, intermediate_size %lld, num_hidden_layers %lld\n"
	       "              num_attention_heads %lld, num_key_value_heads %lld, head_dim %lld\n"
	       "              vocab_size %lld, max_position_embeddings %lld, rope_theta %g, rms_norm_eps %g%s\n",
	       wlb_family(m->family)->model_type, (long long)m->hidden_size, (long long)m->intermediate_size,
	       (long long)m->num_hidden_layers, (long long)m->num_attention_heads, (long long)m->num_key_value_heads,
	       (long long)m->head_dim, (long long)m->vocab_size, (long long)m->max_position_embeddings, m->rope_theta,
	       m->rms_norm_eps, m->tie_word_embeddings ? ", tied embeddings" : "");
	print_positions(m);
	print_caps(m);
	printf("              %lld parameters\n", (long long)wlb_model_parameters(m));
}

static void print_facts(const struct wlb_checkpoint_facts *f)
{
	const struct wlb_schedule_state *of = &f->schedule;
	char ramp[WLB_BATCH_RAMP_TEXT_BYTES];
	printf("  loss        %.6f\n", f->train_loss);
	printf("  steps of    %lld sequences of %lld tokens, packing %s, seed %" PRIu64 "\n",
	       (long long)f->global_batch_size, (long long)f->seq_length, wlb_strategy_name(f->packing), f->seed);
	wlb_batch_ramp_format(&f->ramp, ramp);
	if (f->ramp.start > 0)
		printf("  ramp        --rampup-batch-size %s; %lld sequences were trained\n", ramp,
		       (long long)of->windows);
	printf("  dataset     %lld documents, %lld tokens; next is span %lld of %lld in epoch %lld, both from 0\n",
	       (long long)of->documents, (long long)of->tokens, (long long)of->position, (long long)of->spans,
	       (long long)of->epoch);
	print_model(&f->model);
}

static void print_checksums(const struct wlb_checkpoint_summary *s)
{
	if (s->unsummed == 0)
		printf("  checksums   of all tensors\n");
	else
		printf("  checksums   none of %d tensors: the version that saved them kept none\n", s->unsummed);
}

static void print(const struct wlb_checkpoint_summary *s)
{
	char saved[32], size[64];
	wlb_checkpoint_time_format(s->saved, saved, sizeof(saved));
	wlb_checkpoint_size_format(s, size, sizeof(size));
	wlb_show_line(stdout, "%s", s->path);
	wlb_show_line(stdout, "  state       %s%s%s", wlb_checkpoint_state_name(s), s->state != 0 ? ": " : "",
	              s->why.message);
	printf("  step        %lld, saved %s\n", (long long)s->step, saved);
	print_facts(&s->facts);
	printf("  data        %d tensors, %lld elements%s%s; %s\n", s->tensors, (long long)s->elements,
	       s->dtype[0] != '\0' ? " of " : "", s->dtype, size);
	print_checksums(s);
}

static int print_json(const struct wlb_checkpoint_summary *s, struct wlb_error *error)
{
	json_t *report = wlb_checkpoint_summary_json(s);
	json_t *of_tensors =
		json_pack("{s:i, s:I, s:s, s:i}", "tensors", s->tensors, "elements", (json_int_t)s->elements, "dtype",
	                  s->dtype, "tensors_without_checksum", s->unsummed);
	int failed = json_object_update_new(report, of_tensors);
	failed |= json_object_update_new(report, wlb_manifest_format_facts(&s->facts));
	if (!failed)
		return wlb_json_print_report(report, error);
	json_decref(report);
	return wlb_fail(error, "out of memory for the report");
}

static int show(void *values, struct wlb_error *error)
{
	const struct request *request = values;
	char path[4096];
	int code = wlb_target_choose(request->path, path, error);
	if (code != WLB_EXIT_DONE)
		return code;
	struct wlb_checkpoint_summary summary;
	wlb_checkpoint_summarize(path, &summary);
	if (!summary.has_facts) {
		*error = summary.why;
		return WLB_EXIT_FAILED;
	}
	if (request->json)
		return print_json(&summary, error) == 0 ? WLB_EXIT_DONE : WLB_EXIT_FAILED;
	print(&summary);
	return WLB_EXIT_DONE;
}

#define FIELD(name) offsetof(struct request, name)

static const struct wlb_option options[] = {
	{WLB_OPTION(TEXT, NULL, FIELD(path), "DIR",
                    "a checkpoint, DIR/step_N, or the directory of several: then the newest that is complete"),
         .required = true},
	{WLB_OPTION(FLAG, "json", FIELD(json), NULL,
                    "one JSON object instead of text: that of 'wlb ckpt list' and the facts of manifest.json")},
};

static const struct wlb_option_table table = {
	.command = "wlb ckpt show",
	.about =
		"Shows what a checkpoint says of itself: step, loss, model, options, position in the dataset, tensors.",
	.options = options,
	.count = sizeof(options) / sizeof(options[0]),
};

const struct wlb_command wlb_ckpt_show = {
	.name = "show",
	.summary = "Show the facts of a checkpoint",
	.options = &table,
	.values_bytes = sizeof(struct request),
	.run = show,
};
