/* Any text, written as a JSON string by the Slurm plugin: a JSON parser reads it, and reads the same if it was UTF-8.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "spank/json.h"
#include "tests/fuzz/scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char *text = malloc(bytes + 1), *written = NULL;
	size_t size;
	must(text != NULL);
	memcpy(text, data, bytes);
	text[bytes] = '\0';
	FILE *out = open_memstream(&written, &size);
	must(out != NULL);
	wlb_json_string(out, text);
	must(fclose(out) == 0);
	json_t *read = json_loads(written, JSON_DECODE_ANY, NULL);
	must(json_is_string(read));
	json_t *same = json_string(text); /* NULL when it is not UTF-8 */
	must(same == NULL || json_equal(read, same));
	json_decref(same);
	json_decref(read);
	free(written);
	free(text);
	return 0;
}
