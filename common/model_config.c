#include "common/model_config.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/file.h"
#include "common/layer_types.h"
#include "common/model_experts.h"
#include "common/model_field.h"
#include "common/model_gemma.h"
#include "common/model_keys.h"
#include "common/model_rope.h"

enum { LARGEST_CONFIG_BYTES = 1 << 20 };

/* Which layers of a family have the window of sliding_window, where no layer_types says it. Without use_sliding_window,
 * false by default, no layer of WINDOW_LAST and WINDOW_UNROTATED has it. */
enum window_layers {
	WINDOW_NONE,
	WINDOW_ALL,
	WINDOW_LAST,      /* those from max_window_layers on */
	WINDOW_UNROTATED, /* those that rotate nothing */
	WINDOW_PATTERN,   /* all but the last of so many */
};

/* What Transformers takes for fields that a file lacks, from the configuration_*.py of each family. */
static const struct defaults {
	int64_t num_key_value_heads; /* 0: num_attention_heads */
	int64_t head_dim;            /* 0: hidden_size / num_attention_heads */
	int64_t max_position_embeddings;
	int64_t sliding_window; /* of a file that has no such field; null there is none */
	int64_t no_rope_layer_interval;
	double rms_norm_eps;
	double rope_theta;
	int tie_word_embeddings;
	enum window_layers window_layers;
	int64_t window_pattern; /* of WINDOW_PATTERN */
} defaults[WLB_FAMILIES] = {
	[WLB_FAMILY_LLAMA] = {0, 0, 2048, 0, 0, 1e-6, 1e4, 0, WINDOW_NONE, 0},
	[WLB_FAMILY_MISTRAL] = {8, 0, 131072, 4096, 0, 1e-6, 1e4, 0, WINDOW_ALL, 0},
	[WLB_FAMILY_QWEN2] = {32, 0, 32768, 4096, 0, 1e-6, 1e4, 0, WINDOW_LAST, 0},
	[WLB_FAMILY_QWEN3] = {32, 128, 32768, 4096, 0, 1e-6, 1e4, 0, WINDOW_LAST, 0},
	[WLB_FAMILY_OLMO2] = {0, 0, 2048, 0, 0, 1e-5, 1e4, 0, WINDOW_NONE, 0},
	[WLB_FAMILY_PHI3] = {0, 0, 4096, 0, 0, 1e-5, 1e4, 0, WINDOW_ALL, 0},
	[WLB_FAMILY_SMOLLM3] = {4, 0, 32768, 0, 4, 1e-6, 2e6, 1, WINDOW_UNROTATED, 0},
	[WLB_FAMILY_MIXTRAL] = {8, 0, 131072, 0, 0, 1e-5, 1e6, 0, WINDOW_ALL, 0},
	[WLB_FAMILY_QWEN3_MOE] = {4, 0, 32768, 4096, 0, 1e-6, 1e4, 0, WINDOW_LAST, 0},
	[WLB_FAMILY_OLMOE] = {0, 0, 4096, 0, 0, 1e-5, 1e4, 0, WINDOW_NONE, 0},
	[WLB_FAMILY_NEMOTRON] = {0, 0, 4096, 0, 0, 1e-5, 1e4, 0, WINDOW_NONE, 0},
	[WLB_FAMILY_GEMMA2] = {4, 256, 8192, 4096, 0, 1e-6, 1e4, 1, WINDOW_PATTERN, 2},
	[WLB_FAMILY_GEMMA3] = {4, 256, 131072, 4096, 0, 1e-6, 1e6, 1, WINDOW_PATTERN, 6},
	[WLB_FAMILY_QWEN2_MOE] = {16, 0, 32768, 4096, 0, 1e-6, 1e4, 0, WINDOW_LAST, 0},
	[WLB_FAMILY_DEEPSEEK_V2] = {0, 0, 2048, 0, 0, 1e-6, 1e4, 0, WINDOW_NONE, 0},
	[WLB_FAMILY_DEEPSEEK_V3] = {0, 0, 4096, 0, 0, 1e-6, 1e4, 0, WINDOW_NONE, 0},
	[WLB_FAMILY_GPT_OSS] = {8, 64, 131072, 128, 0, 1e-5, 1.5e5, 0, WINDOW_PATTERN, 2},
};

static const int64_t default_max_window_layers = 28; /* of the families with WINDOW_LAST */

/* Adds the names of all families to a rule. */
static int refuse_family(const char *name, const json_t *value, int is_architecture, struct wlb_error *error)
{
	char rule[512];
	int used = snprintf(rule, sizeof(rule), "only ");
	for (int f = 0; f < WLB_FAMILIES; f++) {
		const struct wlb_family_row *row = wlb_family((enum wlb_family)f);
		used += snprintf(rule + used, sizeof(rule) - (size_t)used, "%s%s", f == 0 ? "" : ", ",
		                 is_architecture ? row->architecture : row->model_type);
	}
	snprintf(rule + used, sizeof(rule) - (size_t)used, " are known");
	return wlb_config_refuse(name, value, rule, error);
}

/* Returns the family of that model_type or architecture; WLB_FAMILIES where there is none. */
static enum wlb_family find_family(const char *name, int is_architecture)
{
	for (int f = 0; name != NULL && f < WLB_FAMILIES; f++) {
		const struct wlb_family_row *row = wlb_family((enum wlb_family)f);
		if (strcmp(name, is_architecture ? row->architecture : row->model_type) == 0)
			return (enum wlb_family)f;
	}
	return WLB_FAMILIES;
}

/* The family of architectures, a list of one; `family` is that of model_type where the list is empty. */
static int read_architecture(const json_t *config, enum wlb_family *family, struct wlb_error *error)
{
	const json_t *value = wlb_config_field(config, "architectures");
	if (value == NULL || (json_is_array(value) && json_array_size(value) == 0))
		return 0;
	const char *only = json_array_size(value) == 1 ? json_string_value(json_array_get(value, 0)) : NULL;
	enum wlb_family found = find_family(only, 1);
	if (found == WLB_FAMILIES)
		return refuse_family("architectures", value, 1, error);
	if (*family != WLB_FAMILIES && found != *family)
		return wlb_config_refuse("architectures", value, "model_type is that of another family", error);
	*family = found;
	return 0;
}

/* Reads model_type; a file without it is of the family of its architecture, or of Llama. */
static int read_family(const json_t *config, enum wlb_family *family, struct wlb_error *error)
{
	const json_t *value = wlb_config_field(config, "model_type");
	*family = WLB_FAMILIES;
	if (value != NULL && !json_is_string(value))
		return wlb_fail(error, "model_type is %s: it must be a text such as \"llama\"",
		                wlb_config_type_name(value));
	if (value != NULL && (*family = find_family(json_string_value(value), 0)) == WLB_FAMILIES)
		return refuse_family("model_type", value, 0, error);
	if (read_architecture(config, family, error) < 0)
		return -1;
	*family = *family == WLB_FAMILIES ? WLB_FAMILY_LLAMA : *family;
	return 0;
}

/* Adds to the message, which refuses a family, what of it is not known here, where a key of its file tells. */
static int explain_family(const json_t *config, int of_shape, struct wlb_error *error)
{
	struct wlb_error why, family = *error;
	if (wlb_model_keys_check(config, of_shape, wlb_family(WLB_FAMILY_LLAMA), &why) < 0)
		wlb_fail(error, "%.300s; %.200s", family.message, why.message);
	return -1;
}

/* A head_dim or num_key_value_heads that is null is derived, whatever a family takes where it is absent. */
static int read_heads(const json_t *config, const struct defaults *d, struct wlb_model *m, struct wlb_error *error)
{
	int is_null = json_is_null(json_object_get(config, "num_key_value_heads"));
	m->num_key_value_heads =
		d->num_key_value_heads > 0 && !is_null ? d->num_key_value_heads : m->num_attention_heads;
	if (wlb_config_count(config, "num_key_value_heads", WLB_CONFIG_OPTIONAL, &m->num_key_value_heads, error) < 0)
		return -1;
	if (wlb_config_field(config, "head_dim") != NULL)
		return wlb_config_count(config, "head_dim", WLB_CONFIG_REQUIRED, &m->head_dim, error);
	if (d->head_dim > 0 && json_object_get(config, "head_dim") == NULL) {
		m->head_dim = d->head_dim;
		return 0;
	}
	if (m->num_attention_heads < 1 || m->hidden_size % m->num_attention_heads != 0)
		return wlb_fail(
			error,
			"num_attention_heads is %lld: it must be at least 1 and divide hidden_size, %lld, where "
			"head_dim is not given",
			(long long)m->num_attention_heads, (long long)m->hidden_size);
	m->head_dim = m->hidden_size / m->num_attention_heads;
	return 0;
}

/* Gemma: the last of so many layers has no window. Only the file of Gemma 3 may say of how many. */
static int read_pattern(const json_t *config, const struct defaults *d, const struct wlb_model *m, int64_t *pattern,
                        struct wlb_error *error)
{
	*pattern = d->window_pattern;
	if (d->window_layers != WINDOW_PATTERN)
		return 0;
	if (wlb_family(m->family)->local_rope &&
	    wlb_config_count(config, "sliding_window_pattern", WLB_CONFIG_OPTIONAL, pattern, error) < 0)
		return -1;
	if (*pattern < 1)
		return wlb_fail(error, "sliding_window_pattern is %lld: it must be at least 1", (long long)*pattern);
	if (m->sliding_window > 0 || *pattern == 1 || wlb_config_field(config, "layer_types") != NULL)
		return 0;
	return wlb_fail(error, "sliding_window is null: it must say of how many tokens the window of most layers is");
}

/* Sets which layers have the window, by layer_types or as the family has it where there is no list. */
static int read_window_layers(const json_t *config, const struct defaults *d, struct wlb_model *m,
                              struct wlb_error *error)
{
	const json_t *types = wlb_config_field(config, "layer_types");
	int64_t first = default_max_window_layers, pattern;
	if (wlb_config_count(config, "max_window_layers", WLB_CONFIG_OPTIONAL, &first, error) < 0 ||
	    read_pattern(config, d, m, &pattern, error) < 0)
		return -1;
	if (types != NULL && wlb_layer_types_parse(types, m, error) < 0)
		return -1;
	if (d->window_layers == WINDOW_ALL && m->sliding_window > 0 && wlb_model_window_share(m) < 1.0)
		return wlb_config_refuse("layer_types", types, "all layers of this family have the sliding_window",
		                         error);
	for (int64_t l = 0; types == NULL && l < m->num_hidden_layers; l++)
		if ((d->window_layers == WINDOW_LAST && l < first) ||
		    (d->window_layers == WINDOW_UNROTATED && wlb_model_layer_rotates(m, l)) ||
		    (d->window_layers == WINDOW_PATTERN && (l + 1) % pattern == 0))
			m->full_layers[l / 64] |= (uint64_t)1 << (l % 64);
	if (wlb_model_window_share(m) == 0.0) {
		m->sliding_window = 0;
		memset(m->full_layers, 0, sizeof(m->full_layers));
	}
	return 0;
}

static int read_window(const json_t *config, const struct defaults *d, struct wlb_model *m, struct wlb_error *error)
{
	int is_used = d->window_layers != WINDOW_LAST && d->window_layers != WINDOW_UNROTATED;
	m->sliding_window = json_object_get(config, "sliding_window") == NULL ? d->sliding_window : 0;
	if (m->num_hidden_layers < 1 || m->num_hidden_layers > WLB_LAYERS_MAX)
		return wlb_model_check(m, error);
	if (wlb_config_count(config, "sliding_window", WLB_CONFIG_OPTIONAL, &m->sliding_window, error) < 0 ||
	    wlb_config_flag(config, "use_sliding_window", &is_used, error) < 0)
		return -1;
	if (wlb_config_field(config, "sliding_window") != NULL && m->sliding_window < 1)
		return wlb_fail(error, "sliding_window is %lld: it must be at least 1, or null",
		                (long long)m->sliding_window);
	if (!is_used)
		m->sliding_window = 0;
	if (read_window_layers(config, d, m, error) < 0)
		return -1;
	if (d->window_layers != WINDOW_NONE || m->sliding_window == 0)
		return 0;
	return wlb_fail(error,
	                "sliding_window is %lld: a %s has none in Transformers; remove it, or name another model_type",
	                (long long)m->sliding_window, wlb_family(m->family)->model_type);
}

/* SmolLM 3: no_rope_layers has 1 for each layer that rotates, else 0. Only lists are known in which every n-th layer
 * rotates nothing, with n of no_rope_layer_interval where there is no list, or none does. */
static int read_rotating_layers(const json_t *config, const struct defaults *d, struct wlb_model *m,
                                struct wlb_error *error)
{
	const json_t *list = wlb_config_field(config, "no_rope_layers"), *rotates;
	size_t i, rotating = 0;
	m->no_rope_layer_interval = d->no_rope_layer_interval;
	if (d->no_rope_layer_interval == 0)
		return list == NULL ? 0 : wlb_config_refuse("no_rope_layers", list, "only smollm3 has it", error);
	if (wlb_config_count(config, "no_rope_layer_interval", WLB_CONFIG_OPTIONAL, &m->no_rope_layer_interval, error) <
	    0)
		return -1;
	if (m->no_rope_layer_interval < 1)
		return wlb_fail(error, "no_rope_layer_interval is %lld: it must be at least 1",
		                (long long)m->no_rope_layer_interval);
	json_array_foreach(list, i, rotates)
	{
		rotating += json_is_integer(rotates) && json_integer_value(rotates) == 1;
	}
	if (list == NULL || json_array_size(list) != (size_t)m->num_hidden_layers)
		return list == NULL ? 0
		                    : wlb_config_refuse("no_rope_layers", list, "it must have an entry a layer", error);
	if (rotating == (size_t)m->num_hidden_layers)
		m->no_rope_layer_interval = 0;
	json_array_foreach(list, i, rotates)
	{
		if (!json_is_integer(rotates) || json_integer_value(rotates) != wlb_model_layer_rotates(m, (int64_t)i))
			return wlb_config_refuse("no_rope_layers", list,
			                         "each must be 1, or 0 in every layer of no_rope_layer_interval alone",
			                         error);
	}
	return 0;
}

/* Fields that change what is computed, and not the shape. */
static int read_computation(const json_t *config, struct wlb_model *m, struct wlb_error *error)
{
	if (wlb_model_gemma_read(config, m, error) < 0 || wlb_model_rope_read(config, m, error) < 0)
		return -1;
	if (m->initializer_range < 0.0 || m->initializer_range > 10.0)
		return wlb_fail(error, "initializer_range is %g: it must be from 0 to 10", m->initializer_range);
	return 0;
}

static int read_model(const json_t *config, enum wlb_model_use use, struct wlb_model *m, struct wlb_error *error)
{
	enum wlb_family family;
	if (!json_is_object(config))
		return wlb_fail(error, "the file holds %s: it must be an object", wlb_config_type_name(config));
	if (read_family(config, &family, error) < 0)
		return explain_family(config, use == WLB_MODEL_TO_PLAN, error);
	if (use == WLB_MODEL_TO_TRAIN && wlb_family(family)->not_trained != NULL)
		return wlb_fail(
			error,
			"model_type is \"%s\": %s; wlb-worker does not train this family, plan it for another trainer",
			wlb_family(family)->model_type, wlb_family(family)->not_trained);
	const struct defaults *d = &defaults[family];
	*m = (struct wlb_model){.family = family,
	                        .max_position_embeddings = d->max_position_embeddings,
	                        .rope_theta = d->rope_theta,
	                        .rms_norm_eps = d->rms_norm_eps,
	                        .tie_word_embeddings = d->tie_word_embeddings,
	                        .initializer_range = 0.02};
	if (wlb_config_count(config, "hidden_size", WLB_CONFIG_REQUIRED, &m->hidden_size, error) < 0 ||
	    wlb_config_count(config, "intermediate_size", WLB_CONFIG_REQUIRED, &m->intermediate_size, error) < 0 ||
	    wlb_config_count(config, "num_hidden_layers", WLB_CONFIG_REQUIRED, &m->num_hidden_layers, error) < 0 ||
	    wlb_config_count(config, "num_attention_heads", WLB_CONFIG_REQUIRED, &m->num_attention_heads, error) < 0 ||
	    wlb_config_count(config, "vocab_size", WLB_CONFIG_REQUIRED, &m->vocab_size, error) < 0 ||
	    wlb_config_count(config, "max_position_embeddings", WLB_CONFIG_OPTIONAL, &m->max_position_embeddings,
	                     error) < 0 ||
	    wlb_config_number(config, "rms_norm_eps", WLB_CONFIG_OPTIONAL, &m->rms_norm_eps, error) < 0 ||
	    wlb_config_number(config, "initializer_range", WLB_CONFIG_OPTIONAL, &m->initializer_range, error) < 0 ||
	    wlb_config_flag(config, "tie_word_embeddings", &m->tie_word_embeddings, error) < 0 ||
	    read_heads(config, d, m, error) < 0 || wlb_model_experts_read(config, m, error) < 0 ||
	    wlb_model_keys_check(config, use == WLB_MODEL_TO_PLAN, wlb_family(family), error) < 0 ||
	    (use == WLB_MODEL_TO_TRAIN && wlb_model_keys_refuse_unknown(config, error) < 0) ||
	    ((use == WLB_MODEL_TO_TRAIN || d->window_layers == WINDOW_UNROTATED) &&
	     read_rotating_layers(config, d, m, error) < 0) ||
	    read_window(config, d, m, error) < 0 ||
	    (use == WLB_MODEL_TO_TRAIN && read_computation(config, m, error) < 0))
		return -1;
	return wlb_model_check(m, error);
}

/* Parses the text; the message names the line and column of an error. */
static int read_text(const char *text, size_t length, enum wlb_model_use use, struct wlb_model *m,
                     struct wlb_error *error)
{
	static const char mark[] = "\xef\xbb\xbf"; /* of bytes in UTF-8, which some editors put first */
	size_t skipped = length >= 3 && memcmp(text, mark, 3) == 0 ? 3 : 0;
	json_error_t place;
	json_t *config = json_loadb(text + skipped, length - skipped, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &place);
	if (config == NULL)
		return wlb_fail(error, "line %d: %s: the file must be JSON", place.line, place.text);
	int rc = read_model(config, use, m, error);
	json_decref(config);
	return rc;
}

int wlb_model_config_read(const char *path, enum wlb_model_use use, struct wlb_model *model, struct wlb_error *error)
{
	char *text, in_folder[PATH_MAX];
	struct stat st;
	size_t length;
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
		if (snprintf(in_folder, sizeof(in_folder), "%s/config.json", path) >= (int)sizeof(in_folder))
			return wlb_fail(error, "%.100s...: the path is too long", path);
		path = in_folder;
	}
	if (wlb_file_read(path, LARGEST_CONFIG_BYTES, &text, &length, error) < 0)
		return -1;
	int rc = read_text(text, length, use, model, error);
	free(text);
	return rc < 0 ? wlb_fail_in(error, "%s", path) : 0;
}
