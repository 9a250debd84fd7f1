#include "common/model_rope.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/model_field.h"

/* The fields of a type, beside those of all types. */
#define FIELDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static const char *const *const fields_of[WLB_ROPE_TYPES] = {
	/* This one does not use what is there, but 1. */
	[WLB_ROPE_DEFAULT] = FIELDS("original_max_position_embeddings", "factor", "attention_factor"),
	[WLB_ROPE_LINEAR] = FIELDS("original_max_position_embeddings", "factor"),
	[WLB_ROPE_LLAMA3] = FIELDS("original_max_position_embeddings", "factor", "low_freq_factor", "high_freq_factor"),
	[WLB_ROPE_YARN] = FIELDS("original_max_position_embeddings", "factor", "attention_factor", "beta_fast",
                                 "beta_slow", "mscale", "mscale_all_dim", "truncate", "finetuned"),
};

static const char *const of_all_types[] = {"rope_type", "type", "rope_theta", "partial_rotary_factor", NULL};

static int is_in(const char *const *names, const char *name)
{
	while (*names != NULL && strcmp(*names, name) != 0)
		names++;
	return *names != NULL;
}

/* rope_type and type, its older name, must agree. */
static int read_type(const json_t *rope, enum wlb_rope_type *type, struct wlb_error *error)
{
	static const char *const names[] = {"type", "rope_type"};
	const json_t *before = NULL;
	*type = WLB_ROPE_DEFAULT;
	for (size_t n = 0; n < 2; n++) {
		const json_t *value = wlb_config_field(rope, names[n]);
		if (value == NULL)
			continue;
		const char *text = json_is_string(value) ? json_string_value(value) : "";
		for (*type = WLB_ROPE_DEFAULT; *type < WLB_ROPE_TYPES; (*type)++)
			if (strcmp(wlb_rope_type_name(*type), text) == 0)
				break;
		if (*type == WLB_ROPE_TYPES)
			return wlb_config_refuse(
				names[n], value,
				"only \"default\", \"linear\", \"llama3\" and \"yarn\" can be trained; "
				"\"dynamic\" and \"longrope\" change with the length of each text",
				error);
		if (before != NULL && !json_equal(before, value))
			return wlb_config_refuse(names[n], value, "type has another value: they must be equal", error);
		before = value;
	}
	return 0;
}

static int check_fields(const json_t *rope, enum wlb_rope_type type, struct wlb_error *error)
{
	const char *name;
	json_t *value;
	json_object_foreach((json_t *)rope, name, value)
	{
		int is_one = json_is_number(value) && json_number_value(value) == 1.0;
		if (json_is_null(value) || is_in(of_all_types, name))
			continue;
		if (!is_in(fields_of[type], name))
			return wlb_config_refuse(name, value, "this key is not known, and may change the angles",
			                         error);
		if (type == WLB_ROPE_DEFAULT && strcmp(name, "original_max_position_embeddings") != 0 && !is_one)
			return wlb_config_refuse(name, value, "only 1 can be trained with the type \"default\"", error);
	}
	return 0;
}

/* get_mscale() of Transformers. */
static double yarn_scale(double factor, double mscale)
{
	return factor <= 1.0 ? 1.0 : 0.1 * mscale * log(factor) + 1.0;
}

static int read_yarn(const json_t *rope, struct wlb_rope_scaling *s, struct wlb_error *error)
{
	double mscale = 0.0, mscale_all_dim = 0.0;
	s->truncate = 1;
	if (wlb_config_number(rope, "beta_fast", WLB_CONFIG_OPTIONAL, &s->beta_fast, error) < 0 ||
	    wlb_config_number(rope, "beta_slow", WLB_CONFIG_OPTIONAL, &s->beta_slow, error) < 0 ||
	    wlb_config_number(rope, "mscale", WLB_CONFIG_OPTIONAL, &mscale, error) < 0 ||
	    wlb_config_number(rope, "mscale_all_dim", WLB_CONFIG_OPTIONAL, &mscale_all_dim, error) < 0 ||
	    wlb_config_flag(rope, "truncate", &s->truncate, error) < 0)
		return -1;
	s->beta_fast = s->beta_fast != 0.0 ? s->beta_fast : 32.0;
	s->beta_slow = s->beta_slow != 0.0 ? s->beta_slow : 1.0;
	s->attention_factor = yarn_scale(s->factor, 1.0);
	if (mscale != 0.0 && mscale_all_dim != 0.0)
		s->attention_factor = yarn_scale(s->factor, mscale) / yarn_scale(s->factor, mscale_all_dim);
	return wlb_config_number(rope, "attention_factor", WLB_CONFIG_OPTIONAL, &s->attention_factor, error);
}

static int read_scaling(const json_t *config, const json_t *rope, struct wlb_model *m, struct wlb_error *error)
{
	struct wlb_rope_scaling *s = &m->rope_scaling;
	if (read_type(rope, &s->type, error) < 0 || check_fields(rope, s->type, error) < 0)
		return -1;
	if (s->type == WLB_ROPE_DEFAULT)
		return 0;
	if (wlb_config_number(rope, "factor", WLB_CONFIG_REQUIRED, &s->factor, error) < 0)
		return -1;
	if (s->type == WLB_ROPE_LINEAR)
		return 0;
	/* A field of the file itself comes first, as in Transformers. */
	s->original_max_position_embeddings = (double)m->max_position_embeddings;
	if (wlb_config_number(wlb_config_field(config, "original_max_position_embeddings") != NULL ? config : rope,
	                      "original_max_position_embeddings", WLB_CONFIG_OPTIONAL,
	                      &s->original_max_position_embeddings, error) < 0)
		return -1;
	if (s->type == WLB_ROPE_YARN)
		return read_yarn(rope, s, error);
	if (wlb_config_number(rope, "low_freq_factor", WLB_CONFIG_REQUIRED, &s->low_freq_factor, error) < 0)
		return -1;
	return wlb_config_number(rope, "high_freq_factor", WLB_CONFIG_REQUIRED, &s->high_freq_factor, error);
}

/* Reads a number that the file, its object of rotary positions, or both have. */
static int read_twice(const json_t *config, const json_t *rope, const char *rope_name, const char *name, double *out,
                      struct wlb_error *error)
{
	double own = *out;
	if (wlb_config_number(config, name, WLB_CONFIG_OPTIONAL, out, error) < 0)
		return -1;
	int is_known = wlb_config_field(config, name) != NULL;
	own = *out;
	if (rope == NULL || wlb_config_field(rope, name) == NULL)
		return 0;
	if (wlb_config_number(rope, name, WLB_CONFIG_OPTIONAL, out, error) < 0)
		return wlb_fail_in(error, "%s", rope_name);
	if (is_known && *out != own)
		return wlb_fail(error, "%s is %g, and %g in %s: they must be equal", name, own, *out, rope_name);
	return 0;
}

/* Phi-3 rotates the first part of each head; the other families have no such field, or pass over it. */
static int set_rotary_dim(double factor, struct wlb_model *m, struct wlb_error *error)
{
	if (factor == 1.0)
		return 0;
	if (m->family != WLB_FAMILY_PHI3)
		return wlb_fail(error, "partial_rotary_factor is %g: only 1 can be trained, but of phi3", factor);
	m->rotary_dim = factor > 0.0 && factor < 1.0 ? (int64_t)((double)m->head_dim * factor) : 0;
	if (m->rotary_dim >= 2)
		return 0;
	return wlb_fail(error, "partial_rotary_factor is %g: it must be at most 1 and leave 2 elements of %lld", factor,
	                (long long)m->head_dim);
}

/* Returns the object of rotary positions, or NULL; *name is its name. */
static int find_rope(const json_t *config, const json_t **rope, const char **name, struct wlb_error *error)
{
	static const char *const names[] = {"rope_parameters", "rope_scaling"};
	*rope = NULL;
	*name = names[0];
	for (size_t i = 0; i < 2; i++) {
		const json_t *value = wlb_config_field(config, names[i]);
		if (value == NULL)
			continue;
		if (!json_is_object(value))
			return wlb_fail(error, "%s is %s: it must be an object", names[i], wlb_config_type_name(value));
		if (*rope != NULL && !json_equal(*rope, value))
			return wlb_config_refuse(names[i], value, "rope_parameters is there too: give one of them",
			                         error);
		*rope = value;
		*name = names[i];
	}
	return 0;
}

/* Gemma 3: rope_parameters has an object for layers with full attention, and one for those with a window, whose angles
 * are of the type "default". Replaces *rope by the first. */
static int read_local(const json_t **rope, struct wlb_model *m, struct wlb_error *error)
{
	const json_t *of_both = *rope, *local = json_object_get(of_both, "sliding_attention");
	const char *name;
	json_t *value;
	enum wlb_rope_type type;
	json_object_foreach((json_t *)of_both, name, value)
	{
		int is_known = strcmp(name, "full_attention") == 0 || strcmp(name, "sliding_attention") == 0;
		if (!is_known || !(json_is_object(value) || json_is_null(value)))
			return wlb_config_refuse(
				name, value, "only the objects \"full_attention\" and \"sliding_attention\" are known",
				error);
	}
	*rope = wlb_config_field(of_both, "full_attention");
	if (!json_is_object(local))
		return 0;
	if (read_type(local, &type, error) < 0 || check_fields(local, type, error) < 0)
		return -1;
	if (type != WLB_ROPE_DEFAULT)
		return wlb_config_refuse("rope_type", local, "only \"default\" is known of \"sliding_attention\"",
		                         error);
	if (wlb_config_number(local, "rope_theta", WLB_CONFIG_OPTIONAL, &m->rope_local_base_freq, error) < 0)
		return -1;
	if (m->rope_local_base_freq < 1.0)
		return wlb_fail(error, "sliding_attention: rope_theta is %g: it must be at least 1",
		                m->rope_local_base_freq);
	return 0;
}

int wlb_model_rope_read(const json_t *config, struct wlb_model *m, struct wlb_error *error)
{
	const json_t *rope;
	const char *name;
	double rotated = 1.0;
	if (find_rope(config, &rope, &name, error) < 0)
		return -1;
	if (wlb_family(m->family)->local_rope && rope != NULL && strcmp(name, "rope_parameters") == 0 &&
	    read_local(&rope, m, error) < 0)
		return wlb_fail_in(error, "%s", name);
	if (rope != NULL && read_scaling(config, rope, m, error) < 0)
		return wlb_fail_in(error, "%s", name);
	if (m->family == WLB_FAMILY_PHI3 && m->rope_scaling.type != WLB_ROPE_DEFAULT)
		return wlb_fail(error,
		                "%s: a type other than \"default\" is \"longrope\" in phi3, which changes with the "
		                "length of each text",
		                name);
	if (read_twice(config, rope, name, "rope_theta", &m->rope_theta, error) < 0 ||
	    read_twice(config, rope, name, "partial_rotary_factor", &rotated, error) < 0)
		return -1;
	return set_rotary_dim(rotated, m, error);
}
