/* What a handler of Python may have written, and the frames that are made of it: bounded and printable. */
#include <stdlib.h>
#include <string.h>

#include "coordinator/stacks/announced_handler.h"
#include "coordinator/stacks/python_stacks.h"
#include "tests/fuzz/scratch.h"

enum { PID = 7, MAX = 64, TEXT_MAX = 200 };

static void check(const json_t *python)
{
	static const char *const native[] = {"read+0x1 (libc.so.6)", "0x12 (python3.11)"};
	json_t *frames = wlb_python_stacks_frames(python, PID, native, 2, MAX);
	must(json_array_size(frames) > 0 && json_array_size(frames) <= MAX);
	for (size_t i = 0; i < json_array_size(frames); i++) {
		const char *text = json_string_value(json_array_get(frames, i));
		must(text != NULL && strlen(text) <= TEXT_MAX && text[strlen(text) - 1] == ')');
		for (const char *c = text; *c != '\0'; c++)
			must(*c >= ' ' && *c <= '~');
	}
	json_decref(frames);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char *text = malloc(bytes + 1);
	must(text != NULL);
	memcpy(text, data, bytes);
	text[bytes] = '\0';
	json_t *threads = wlb_announced_handler_read(text, PID);
	check(threads);
	json_decref(threads);
	threads = json_loads(text, 0, NULL); /* as of py-spy */
	check(threads);
	json_decref(threads);
	free(text);
	return 0;
}
