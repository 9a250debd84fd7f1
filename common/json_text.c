#include "common/json_text.h"

#include <stdlib.h>
#include <string.h>

#include "libwlb/wlb.h"

json_t *wlb_json_text_cut(const char *text, size_t max)
{
	size_t length = strlen(text);
	json_t *string = length <= max ? json_stringn(text, length) : NULL; /* NULL, too, where it is not UTF-8 */
	if (string != NULL)
		return string;
	size_t longest = length * strlen(WLB_TEXT_REPLACEMENT), size = (longest < max ? longest : max) + 1;
	char *stored = malloc(size);
	if (stored == NULL)
		return NULL;
	string = json_stringn(stored, wlb_text_store(stored, size, text));
	free(stored);
	return string;
}

json_t *wlb_json_text(const char *text)
{
	return wlb_json_text_cut(text, WLB_JSON_TEXT_MAX);
}
