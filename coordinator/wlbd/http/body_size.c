#include "coordinator/wlbd/http/body_size.h"

#include <limits.h>
#include <stdbool.h>

struct wlbd_body_size wlbd_body_size(const char *text, size_t length)
{
	struct wlbd_body_size size = {.values = 1};
	int depth = 0;
	bool quoted = false;
	for (size_t i = 0; i < length; i++) {
		char c = text[i];
		if (quoted && c == '\\')
			i++;
		else if (c == '"')
			quoted = !quoted;
		if (quoted)
			continue;
		size.values += c == ',' || c == ':' || c == '[' || c == '{';
		if ((c == '{' || c == '[') && depth < INT_MAX && ++depth > size.depth)
			size.depth = depth;
		else if (c == '}' || c == ']')
			depth--;
	}
	return size;
}
