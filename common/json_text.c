#include "common/json_text.h"

#include <string.h>

enum { CHARACTER_BYTES_MAX = 4 };

json_t *wlb_json_text(const char *text, size_t most)
{
	size_t length = strnlen(text, most);
	for (size_t cut = 0; cut < CHARACTER_BYTES_MAX && cut <= length; cut++) {
		json_t *string = json_stringn(text, length - cut);
		if (string != NULL)
			return string;
	}
	return json_string("");
}
