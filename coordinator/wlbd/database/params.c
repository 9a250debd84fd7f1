#include "coordinator/wlbd/database/params.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libwlb/wlb.h"

/* A statement with more parameters is an error of this program, also in a build without assert(). */
static void check_space(const struct wlbd_params *params)
{
	if (params->count >= WLBD_PARAMS_MAX)
		abort();
}

void wlbd_params_add_text(struct wlbd_params *params, const char *text)
{
	check_space(params);
	params->list[params->count++] = text;
}

void wlbd_params_add_integer(struct wlbd_params *params, int64_t value)
{
	check_space(params);
	char *number = params->numbers[params->count];
	snprintf(number, WLBD_PARAM_NUMBER_SIZE, "%lld", (long long)value);
	wlbd_params_add_text(params, number);
}

void wlbd_params_add_integer_if(struct wlbd_params *params, bool is_known, int64_t value)
{
	if (is_known)
		wlbd_params_add_integer(params, value);
	else
		wlbd_params_add_text(params, NULL);
}

void wlbd_params_add_seconds(struct wlbd_params *params, double value_s)
{
	check_space(params);
	char *number = params->numbers[params->count];
	snprintf(number, WLBD_PARAM_NUMBER_SIZE, "%.6f", value_s);
	wlbd_params_add_text(params, number);
}

void wlbd_params_add_boolean(struct wlbd_params *params, bool value)
{
	wlbd_params_add_text(params, value ? "t" : "f");
}

/* Returns how many bytes the text has when it is stored, with its NUL; 0 where it is UTF-8 already. */
static size_t stored_bytes(const char *text)
{
	size_t length = strlen(text), invalid = 0;
	for (size_t offset = 0; offset < length;) {
		uint32_t code;
		offset += wlb_text_first(text + offset, length - offset, &code);
		invalid += code == WLB_TEXT_INVALID;
	}
	return invalid > 0 ? length + invalid * strlen(WLB_TEXT_REPLACEMENT) + 1 : 0;
}

int wlbd_params_texts(const struct wlbd_params *params, const char *texts[WLBD_PARAMS_MAX], char **memory)
{
	size_t sizes[WLBD_PARAMS_MAX] = {0}, total = 0;
	*memory = NULL;
	for (int i = 0; i < params->count; i++) {
		texts[i] = params->list[i];
		sizes[i] = texts[i] != NULL ? stored_bytes(texts[i]) : 0;
		total += sizes[i];
	}
	if (total > 0 && (*memory = malloc(total)) == NULL)
		return -1;
	char *end = *memory;
	for (int i = 0; i < params->count; i++) {
		if (sizes[i] == 0)
			continue;
		wlb_text_store(end, sizes[i], params->list[i]);
		texts[i] = end;
		end += sizes[i];
	}
	return 0;
}

struct wlbd_params *wlbd_params_copy(const struct wlbd_params *params, size_t *bytes)
{
	size_t sizes[WLBD_PARAMS_MAX] = {0};
	size_t total = 0;
	for (int i = 0; i < params->count; i++) {
		sizes[i] = params->list[i] != NULL ? strlen(params->list[i]) + 1 : 0;
		total += sizes[i];
	}
	struct wlbd_params *copy = malloc(sizeof(*copy) + total);
	if (copy == NULL)
		return NULL;
	*copy = (struct wlbd_params){.count = params->count};
	char *end = (char *)(copy + 1);
	for (int i = 0; i < params->count; i++) {
		if (params->list[i] == NULL)
			continue;
		copy->list[i] = memcpy(end, params->list[i], sizes[i]);
		end += sizes[i];
	}
	if (bytes != NULL)
		*bytes = total;
	return copy;
}
