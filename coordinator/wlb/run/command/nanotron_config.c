#include "coordinator/wlb/run/command/nanotron_config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/file.h"
#include "coordinator/wlb/run/command/block_yaml.h"

enum { FILE_BYTES_MAX = 1 << 20 };

static const char layout_section[] = "parallelism", batch_section[] = "tokens";

/* Returns the text of the file, which the caller frees; *file is its name in the command. */
static char *read_text(char *const *words, const char **file, struct wlb_error *error)
{
	char *text = NULL;
	*file = wlb_trainer_value(words, "--config-file");
	if (*file == NULL) {
		wlb_fail(error,
		         "--for=nanotron: the command has no --config-file FILE, which is where nanotron has its "
		         "layout; add it");
		return NULL;
	}
	if (wlb_file_read(*file, FILE_BYTES_MAX, &text, NULL, error) != 0)
		wlb_fail_in(error, "--config-file %.300s", *file);
	return text;
}

static int read_config(const char *text, struct wlb_nanotron_config *config, struct wlb_error *error)
{
	int64_t dp, accumulated;
	*config = (struct wlb_nanotron_config){.cp = 1};
	if (wlb_block_yaml_number(text, batch_section, "sequence_length", &config->seq_length, error) < 0 ||
	    wlb_block_yaml_number(text, batch_section, "micro_batch_size", &config->micro_batch_size, error) < 0 ||
	    wlb_block_yaml_number(text, batch_section, "batch_accumulation_per_replica", &accumulated, error) < 0 ||
	    wlb_block_yaml_number(text, layout_section, "dp", &dp, error) < 0)
		return -1;
	if (wlb_block_yaml_has(text, layout_section, "context_parallel_size") &&
	    wlb_block_yaml_number(text, layout_section, "context_parallel_size", &config->cp, error) < 0)
		return -1;
	config->has_recompute = wlb_block_yaml_has(text, layout_section, "recompute_layer");
	if ((double)config->micro_batch_size * (double)accumulated * (double)dp > 1 << 20)
		return wlb_fail(error,
		                "micro_batch_size x batch_accumulation_per_replica x dp is the windows of a step: "
		                "must be %d at most",
		                1 << 20);
	config->global_batch = config->micro_batch_size * accumulated * dp;
	return 0;
}

int wlb_nanotron_config_read(char *const *words, struct wlb_nanotron_config *config, struct wlb_error *error)
{
	const char *file;
	char *text = read_text(words, &file, error);
	if (text == NULL)
		return -1;
	int rc = read_config(text, config, error);
	free(text);
	return rc < 0 ? wlb_fail_in(error, "--config-file %.300s", file) : 0;
}

static int set_number(char **text, const char *section, const char *key, int64_t number, struct wlb_error *error)
{
	char value[24];
	snprintf(value, sizeof(value), "%" PRId64, number);
	return wlb_block_yaml_set(text, section, key, value, error);
}

static int set_layout(char **text, const struct wlb_trainer_layout *told, bool *has_recompute, struct wlb_error *error)
{
	const struct wlb_layout *layout = &told->layout;
	struct wlb_nanotron_config config;
	if (read_config(*text, &config, error) < 0)
		return -1;
	int64_t micro = told->micro_batch_size > 0 ? told->micro_batch_size : config.micro_batch_size;
	int64_t at_once = micro * layout->dp;
	if (config.global_batch % at_once != 0)
		return wlb_fail(error,
		                "a step has %" PRId64
		                " windows: must be a multiple of dp=%d x micro_batch_size=%" PRId64,
		                config.global_batch, layout->dp, micro);
	if (layout->cp != config.cp)
		return wlb_fail(error, "context_parallel_size is %" PRId64 ": must be cp=%d of the layout", config.cp,
		                layout->cp);
	if (set_number(text, layout_section, "dp", layout->dp, error) < 0 ||
	    set_number(text, layout_section, "pp", layout->pp, error) < 0 ||
	    set_number(text, layout_section, "tp", layout->tp, error) < 0 ||
	    set_number(text, batch_section, "micro_batch_size", micro, error) < 0 ||
	    set_number(text, batch_section, "batch_accumulation_per_replica", config.global_batch / at_once, error) < 0)
		return -1;
	*has_recompute = config.has_recompute;
	return told->micro_batch_size > 0 && config.has_recompute
	               ? wlb_block_yaml_set(text, layout_section, "recompute_layer",
	                                    told->recomputes_layers ? "true" : "false", error)
	               : 0;
}

int wlb_nanotron_config_write(char *const *words, const struct wlb_trainer_layout *layout, const char *path,
                              bool *has_recompute, struct wlb_error *error)
{
	const char *file;
	char *text = read_text(words, &file, error);
	if (text == NULL)
		return -1;
	int rc = set_layout(&text, layout, has_recompute, error);
	if (rc < 0)
		wlb_fail_in(error, "--config-file %.300s", file);
	else
		rc = wlb_file_write(path, text, strlen(text), 0600, error);
	free(text);
	return rc;
}
