/* Any head of an HTTP reply: refused, or a status and a body within the limit. */
#include <stdlib.h>
#include <string.h>

#include "coordinator/client/http.h"
#include "tests/fuzz/scratch.h"

enum { LIMIT_BYTES = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct wlb_http_head head = {0};
	struct wlb_error error;
	char *text = malloc(bytes + 1);
	must(text != NULL);
	memcpy(text, data, bytes);
	text[bytes] = '\0';
	if (wlb_http_head_parse(text, LIMIT_BYTES, &head, &error) == 0) {
		must(head.status >= 100 && head.status <= 599);
		must(head.until_close || head.body_bytes <= LIMIT_BYTES);
	}
	free(text);
	return 0;
}
