#include "libverdict/stack_frame.h"

#include <stdio.h>
#include <string.h>

/* Parts of a frame's text. */
struct part {
	const char *text;
	size_t length;
};

/* "libmpi" of "PMPI_Allreduce+0x1c (libmpi.so.40)": without the version of the library. */
static struct part file_of(const char *frame)
{
	const char *open = strrchr(frame, '(');
	if (open == NULL)
		return (struct part){"", 0};
	size_t length = strcspn(open + 1, ")");
	for (size_t i = 0; i + 3 <= length; i++)
		if (strncmp(open + 1 + i, ".so", 3) == 0)
			length = i;
	return (struct part){open + 1, length};
}

/* Nothing where the frame has an address instead of a name. */
static struct part function_of(const char *frame)
{
	const char *blank = strrchr(frame, '('), *plus;
	size_t length = blank != NULL ? (size_t)(blank - frame) : strlen(frame);
	if (strncmp(frame, "0x", 2) == 0)
		return (struct part){"", 0};
	for (plus = frame; (plus = strstr(plus, "+0x")) != NULL && plus < frame + length; plus++)
		length = (size_t)(plus - frame);
	return (struct part){frame, length};
}

static int compare_parts(struct part a, struct part b)
{
	size_t common = a.length < b.length ? a.length : b.length;
	int order = strncmp(a.text, b.text, common);
	return order != 0 ? order : (a.length > b.length) - (a.length < b.length);
}

void verdict_frame_write(const char *frame, char *text, size_t size)
{
	struct part function = function_of(frame);
	const char *rest = frame + function.length;
	if (*rest == '+')
		rest += 3 + strspn(rest + 3, "0123456789abcdef");
	snprintf(text, size, "%.*s%s", (int)function.length, function.text, rest);
}

int verdict_frame_compare(const char *a, const char *b)
{
	int order = compare_parts(function_of(a), function_of(b));
	return order != 0 ? order : compare_parts(file_of(a), file_of(b));
}

static int begins_with_one_of(struct part part, const char *const *beginnings)
{
	for (; *beginnings != NULL; beginnings++) {
		size_t length = strlen(*beginnings);
		if (part.length >= length && strncmp(part.text, *beginnings, length) == 0)
			return 1;
	}
	return 0;
}

int verdict_frame_is_communication(const char *frame)
{
	static const char *const files[] = {"libmpi",     "libopen-pal", "libopen-rte", "mca_",       "libpmix",
	                                    "libnccl",    "librccl",     "libuc",       "libfabric",  "libpsm",
	                                    "libibverbs", "libmlx",      "libgloo",     "libnvshmem", "libsharp",
	                                    "libhcoll",   "libcuda",     "libamdhip",   "libhsa",     NULL};
	static const char *const functions[] = {"MPI_", "PMPI_", "nccl", "pnccl", NULL};
	return begins_with_one_of(file_of(frame), files) || begins_with_one_of(function_of(frame), functions);
}

int verdict_frame_is_c_library(const char *frame)
{
	static const char *const files[] = {"libc-", "libpthread", "ld-linux", "[vdso", "linux-vdso", NULL};
	struct part file = file_of(frame);
	return (file.length == 4 && strncmp(file.text, "libc", 4) == 0) || begins_with_one_of(file, files);
}
