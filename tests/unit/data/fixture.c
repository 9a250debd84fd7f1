#include "tests/unit/data/fixture.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int fixture_setup(void **state)
{
	const char *parent = getenv("TMPDIR");
	char *path;
	if (asprintf(&path, "%s/wlb-test.XXXXXX", parent ? parent : "/tmp") < 0)
		return -1;
	*state = path;
	return mkdtemp(path) == NULL ? -1 : 0;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

int fixture_teardown(void **state)
{
	int rc = nftw(*state, remove_entry, 8, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	free(*state);
	return rc;
}

const char *fixture_path(void **state, const char *name)
{
	static char paths[10][PATH_MAX];
	static int next;
	char *path = paths[next++ % 10];
	assert_true(snprintf(path, PATH_MAX, "%s/%s", (char *)*state, name) < PATH_MAX);
	return path;
}

const char *fixture_write(void **state, const char *name, const void *data, size_t bytes)
{
	const char *path = fixture_path(state, name);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, bytes, file), bytes);
	assert_int_equal(fclose(file), 0);
	return path;
}

const char *fixture_write_text(void **state, const char *name, const char *text)
{
	return fixture_write(state, name, text, strlen(text));
}

char *fixture_read(const char *path, size_t *bytes)
{
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	assert_int_equal(fseek(file, 0, SEEK_END), 0);
	*bytes = (size_t)ftell(file);
	rewind(file);
	char *data = malloc(*bytes + 1);
	assert_non_null(data);
	assert_int_equal(fread(data, 1, *bytes, file), *bytes);
	data[*bytes] = '\0';
	fclose(file);
	return data;
}

int fixture_entries(const char *path)
{
	DIR *folder = opendir(path);
	assert_non_null(folder);
	int count = -2; /* "." and ".." */
	while (readdir(folder) != NULL)
		count++;
	closedir(folder);
	return count;
}

int fixture_exists(const char *path)
{
	return access(path, F_OK) == 0;
}
