/* Sets of what is recomputed: their names, and which models have them. */
#include <stdio.h>
#include <string.h>

#include "libwlb/wlb.h"

static const struct {
	const char *name;
	enum wlb_recompute set;
} modules[] = {
	{"core_attn", WLB_RECOMPUTE_CORE_ATTN},
	{"layernorm", WLB_RECOMPUTE_LAYERNORM},
	{"act", WLB_RECOMPUTE_ACT},
	{"mla_up_proj", WLB_RECOMPUTE_MLA_UP_PROJ},
	{"mlp", WLB_RECOMPUTE_MLP},
	{"moe", WLB_RECOMPUTE_MOE},
	{"moe_act", WLB_RECOMPUTE_MOE_ACT},
	{"shared_experts", WLB_RECOMPUTE_SHARED_EXPERTS},
};

enum { MODULES = sizeof(modules) / sizeof(modules[0]), OF_EXPERTS = WLB_RECOMPUTE_MOE | WLB_RECOMPUTE_MOE_ACT };

/* The sets that have a name of their own, by their values. */
static const char *const sets[] = {"none", "selective", "full"};

enum { SETS = sizeof(sets) / sizeof(sets[0]) };

void wlb_recompute_set_format(enum wlb_recompute set, char *text, size_t size)
{
	size_t used = wlb_text_format(text, size, "%s", (unsigned)set < SETS ? sets[set] : "");
	for (int i = 0; i < MODULES; i++)
		if (set & modules[i].set)
			used += wlb_text_format(text + used, size - used, "%s%s", used > 0 ? "," : "", modules[i].name);
}

static int parse_word(const char *word, size_t bytes, unsigned *set, struct wlb_error *error)
{
	for (int i = 0; i < MODULES; i++)
		if (strlen(modules[i].name) == bytes && memcmp(modules[i].name, word, bytes) == 0) {
			*set |= modules[i].set;
			return 0;
		}
	return wlb_fail(error,
	                "'%.*s': must be none, selective or full, or some of core_attn, layernorm, act, mla_up_proj, "
	                "mlp, moe, moe_act and shared_experts with commas between them",
	                bytes < 60 ? (int)bytes : 60, word);
}

int wlb_recompute_set_parse(const char *text, enum wlb_recompute *set, struct wlb_error *error)
{
	static const char between[] = ", ";
	unsigned found = 0;
	for (unsigned i = 0; i < SETS; i++)
		if (strcmp(text, sets[i]) == 0) {
			*set = (enum wlb_recompute)i;
			return 0;
		}
	do {
		size_t bytes = strcspn(text, between);
		if (parse_word(text, bytes, &found, error) < 0)
			return -1;
		text += bytes;
	} while (*text++ != '\0');
	*set = (enum wlb_recompute)found;
	return 0;
}

int wlb_recompute_set_check(enum wlb_recompute set, const struct wlb_model *model,
                            const struct wlb_cost_options *options, struct wlb_error *error)
{
	unsigned all = 0;
	for (int i = 0; i < MODULES; i++)
		all |= modules[i].set;
	if ((unsigned)set >= SETS && ((unsigned)set & ~all) != 0)
		return wlb_fail(error, "recompute is %d: it must be none, selective, full, or modules of wlb_recompute",
		                (int)set);
	if ((unsigned)set >= SETS && options != NULL && options->trainer == WLB_COST_WORKER)
		return wlb_fail(error,
		                "recompute is a set of modules: for wlb-worker it must be none, selective or full");
	if ((set & OF_EXPERTS) && model->num_experts == 0)
		return wlb_fail(error, "recompute has moe or moe_act: the model has no experts; leave them out");
	if ((set & WLB_RECOMPUTE_SHARED_EXPERTS) && model->shared_intermediate_size == 0)
		return wlb_fail(error, "recompute has shared_experts: the model has none; leave it out");
	if ((set & WLB_RECOMPUTE_MLA_UP_PROJ) && !wlb_family(model->family)->latent)
		return wlb_fail(error, "recompute has mla_up_proj: the model's attention is not latent; leave it out");
	return 0;
}
