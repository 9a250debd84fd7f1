#include "tests/fuzz/scratch.h"

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/wlb-fuzz.XXXXXX";

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static void remove_folder(void)
{
	nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

_Noreturn void scratch_broken(const char *condition, const char *file, int line)
{
	fprintf(stderr, "%s:%d: %s does not hold\n", file, line, condition);
	abort();
}

const char *scratch_path(const char *name)
{
	static int made, next;
	static char paths[10][PATH_MAX];
	if (!made) {
		must(mkdtemp(folder) != NULL);
		atexit(remove_folder);
		made = 1;
	}
	char *path = paths[next++ % 10];
	snprintf(path, PATH_MAX, "%s/%s", folder, name);
	return path;
}

const char *scratch_write(const char *name, const void *data, size_t bytes)
{
	const char *path = scratch_path(name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	must(fd >= 0 && write(fd, data, bytes) == (ssize_t)bytes && close(fd) == 0);
	return path;
}

void scratch_touch(const void *data, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		(void)((const volatile char *)data)[i];
}

int scratch_lines(char *text, char **words, int most)
{
	int count = 0;
	for (char *at = text; *at != '\0' && count < most;) {
		char *end = strchr(at, '\n');
		words[count++] = at;
		if (end == NULL)
			break;
		*end = '\0';
		at = end + 1;
	}
	words[count] = NULL;
	return count;
}
