#include "coordinator/stacks/python_stacks.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "coordinator/stacks/announced_handler.h"
#include "coordinator/stacks/py_spy.h"

enum {
	TEXT_SIZE = 201, /* as other frames */
	NAME_MAX_BYTES = 100,
	FILE_MAX_BYTES = 70,
	READ_MAX_MS = 1500,
};

json_t *wlb_python_stacks_read(pid_t pid, int64_t until_ms)
{
	int left_ms = wlb_clock_left_ms(until_ms) / 2;
	int64_t python_until_ms = wlb_clock_ms() + (left_ms < READ_MAX_MS ? left_ms : READ_MAX_MS);
	json_t *threads = wlb_py_spy_dump(pid, python_until_ms);
	if (json_array_size(threads) > 0)
		return threads;
	json_decref(threads);
	return wlb_announced_handler_dump(pid, python_until_ms);
}

static const json_t *find_thread(const json_t *python, pid_t tid)
{
	for (size_t i = 0; i < json_array_size(python); i++) {
		const json_t *thread = json_array_get(python, i);
		if (json_integer_value(json_object_get(thread, "os_thread_id")) == tid)
			return thread;
	}
	return NULL;
}

/* The end of a path, from one of its folders on. */
static const char *end_of_path(const char *path)
{
	size_t length = strlen(path);
	if (length <= FILE_MAX_BYTES)
		return path;
	const char *end = path + length - FILE_MAX_BYTES, *slash = strchr(end, '/');
	return slash != NULL ? slash + 1 : end;
}

/* Names are those of a user's files: the parentheses around the file are the only ones. */
static void write_frame(const json_t *frame, char text[TEXT_SIZE])
{
	const char *name = json_string_value(json_object_get(frame, "name"));
	const char *file = json_string_value(json_object_get(frame, "short_filename"));
	if (file == NULL)
		file = json_string_value(json_object_get(frame, "filename"));
	int length = snprintf(text, TEXT_SIZE, "%.*s (%s:%d", NAME_MAX_BYTES, name != NULL ? name : "?",
	                      end_of_path(file != NULL ? file : "?"),
	                      (int)json_integer_value(json_object_get(frame, "line")));
	bool is_file = false;
	for (char *c = text; *c != '\0'; c++) {
		bool is_first = *c == '(' && c > text && c[-1] == ' ' && !is_file;
		is_file = is_file || is_first;
		if (*c < ' ' || *c > '~' || *c == ')' || (*c == '(' && !is_first))
			*c = '?';
	}
	snprintf(text + length, (size_t)(TEXT_SIZE - length), ")");
}

/* Frames such as "_PyEval_EvalFrameDefault+0x4 (python3.11)". */
static bool is_interpreter(const char *frame)
{
	const char *file = strrchr(frame, '(');
	return file != NULL && (strncmp(file, "(python", 7) == 0 || strncmp(file, "(libpython", 10) == 0);
}

json_t *wlb_python_stacks_frames(const json_t *python, pid_t tid, const char *const *native, int count, int max)
{
	const json_t *frames = json_object_get(find_thread(python, tid), "frames");
	bool has_python = json_array_size(frames) > 0;
	json_t *list = json_array();
	for (int i = 0; i < count && i < max && !(has_python && is_interpreter(native[i])); i++)
		json_array_append_new(list, json_string(native[i]));
	for (size_t i = 0; i < json_array_size(frames) && json_array_size(list) < (size_t)max; i++) {
		char text[TEXT_SIZE];
		write_frame(json_array_get(frames, i), text);
		json_array_append_new(list, json_string(text));
	}
	return list;
}
