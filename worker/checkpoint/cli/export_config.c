#include "worker/checkpoint/cli/export_config.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/file.h"
#include "common/model_config.h"
#include "worker/checkpoint/cli/made_config.h"
#include "worker/checkpoint/manifest.h"

enum { LARGEST_CONFIG_BYTES = 1 << 20, LARGEST_COPY_BYTES = 1 << 28 };

static const char CONFIG_NAME[] = "config.json";

/* What Transformers reads of a tokenizer; programs in the folder are not copied. */
static const char *const copied[] = {
	"generation_config.json",  "tokenizer.json",     "tokenizer.model", "tokenizer_config.json",
	"special_tokens_map.json", "added_tokens.json",  "vocab.json",      "merges.txt",
	"chat_template.jinja",     "chat_template.json", "tekken.json",
};

static int make_path(const char *folder, const char *name, char path[PATH_MAX], struct wlb_error *error)
{
	if (snprintf(path, PATH_MAX, "%s/%s", folder, name) >= PATH_MAX)
		return wlb_fail(error, "%.100s...: the path is too long", folder);
	return 0;
}

int wlb_export_check_config(const char *from, const struct wlb_checkpoint_facts *facts, struct wlb_error *error)
{
	char path[PATH_MAX], differences[640];
	struct wlb_model named;
	if (from == NULL)
		return 0;
	if (make_path(from, CONFIG_NAME, path, error) < 0 ||
	    wlb_model_config_read(path, WLB_MODEL_TO_TRAIN, &named, error) < 0)
		return -1;
	int count = wlb_manifest_compare_models(&facts->model, &named, differences, sizeof(differences));
	if (count == 0)
		return 0;
	return wlb_fail(
		error,
		"%.1000s is not of the model of the checkpoint: %s: --from must name a folder with the config.json "
		"of the run (--model)",
		path, count > 0 ? differences : "out of memory");
}

static json_t *read_config(const char *from, struct wlb_error *error)
{
	char path[PATH_MAX], *text;
	size_t bytes;
	json_error_t place;
	if (make_path(from, CONFIG_NAME, path, error) < 0 ||
	    wlb_file_read(path, LARGEST_CONFIG_BYTES, &text, &bytes, error) < 0)
		return NULL;
	json_t *config = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &place);
	free(text);
	if (config == NULL)
		wlb_fail(error, "%s: line %d: %s", path, place.line, place.text);
	return config;
}

static json_t *make_config(const struct wlb_model *model, struct wlb_error *error)
{
	json_t *config = wlb_made_config(model);
	if (config == NULL)
		wlb_fail(error, "out of memory for config.json");
	return config;
}

/* Writes the configuration, which it takes, with the type of the weights: a loader rounds them to the type that it
 * finds there. Transformers 5 calls it "dtype", earlier ones "torch_dtype"; all read the latter. */
static int write_config(json_t *config, enum wlb_dtype dtype, const char *folder, struct wlb_error *error)
{
	char path[PATH_MAX];
	const char *key = json_object_get(config, "dtype") != NULL ? "dtype" : "torch_dtype";
	int failed = json_object_set_new(config, key, json_string(wlb_dtype_name(dtype)));
	char *text = failed ? NULL : json_dumps(config, JSON_INDENT(2));
	json_decref(config);
	int rc = text != NULL ? make_path(folder, CONFIG_NAME, path, error)
	                      : wlb_fail(error, "out of memory for config.json");
	if (rc == 0)
		rc = wlb_file_write(path, text, strlen(text), 0666, error);
	free(text);
	return rc;
}

/* Copies a file, where it is there. */
static int copy(const char *from, const char *name, const char *folder, struct wlb_error *error)
{
	char source[PATH_MAX], path[PATH_MAX], *data;
	size_t bytes;
	struct stat st;
	if (make_path(from, name, source, error) < 0 || make_path(folder, name, path, error) < 0)
		return -1;
	if (stat(source, &st) < 0)
		return errno == ENOENT ? 0 : wlb_fail(error, "%s: %s", source, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return wlb_fail(error, "%s: is not a regular file", source);
	if (wlb_file_read(source, LARGEST_COPY_BYTES, &data, &bytes, error) < 0)
		return -1;
	int rc = wlb_file_write(path, data, bytes, 0666, error);
	free(data);
	return rc;
}

int wlb_export_config(const char *from, const struct wlb_checkpoint_facts *facts, enum wlb_dtype dtype,
                      const char *folder, struct wlb_error *error)
{
	json_t *config = from != NULL ? read_config(from, error) : make_config(&facts->model, error);
	if (config == NULL || write_config(config, dtype, folder, error) < 0)
		return -1;
	for (size_t i = 0; from != NULL && i < sizeof(copied) / sizeof(copied[0]); i++)
		if (copy(from, copied[i], folder, error) < 0)
			return -1;
	return 0;
}
