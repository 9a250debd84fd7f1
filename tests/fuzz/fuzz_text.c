/* Any bytes, stored and shown in any size: jansson, which knows UTF-8 too, takes them; UTF-8 is stored as it is;
 * nothing is cut inside a character; and no line has a control character. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "libwlb/wlb.h"
#include "tests/fuzz/scratch.h"

static void check_utf8(const char *text, size_t length)
{
	json_t *string = json_stringn(text, length);
	must(string != NULL);
	json_decref(string);
}

static void check_line(const char *line)
{
	for (size_t left = strlen(line), bytes; left > 0; line += bytes, left -= bytes) {
		uint32_t code;
		bytes = wlb_text_first(line, left, &code);
		must(code != WLB_TEXT_INVALID && !wlb_text_is_control(code));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	size_t size = bytes > 0 ? 1 + (size_t)data[0] : 1;
	char *text = malloc(bytes + 1), *stored = malloc(size), *shown = malloc(size);
	must(text != NULL && stored != NULL && shown != NULL);
	memcpy(text, data, bytes);
	text[bytes] = '\0';
	size_t length = strlen(text);
	must(wlb_text_store(stored, size, text) == strlen(stored) && strlen(stored) < size);
	check_utf8(stored, strlen(stored));
	must(wlb_text_show(shown, size, text) == strlen(shown) && strlen(shown) < size);
	check_line(shown);
	json_t *same = json_string(text); /* NULL when it is not UTF-8 */
	size_t cut = wlb_text_cut(text, size - 1);
	must(cut < size && cut <= length && (cut == length || cut + 4 >= size));
	if (same != NULL) {
		check_utf8(text, cut);
		must(strlen(stored) == cut && memcmp(stored, text, cut) == 0);
	}
	json_decref(same);
	free(shown);
	free(stored);
	free(text);
	return 0;
}
