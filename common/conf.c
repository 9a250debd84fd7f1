#include "common/conf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/line.h"

enum { LINE_BYTES = 4096 };

static const char default_file[] = "/etc/wlb/wlb.conf";

static const char *named_file(void)
{
	const char *named = getenv("WLB_CONF");
	return named != NULL && *named != '\0' ? named : NULL;
}

const char *wlb_conf_path(void)
{
	const char *named = named_file();
	return named != NULL ? named : default_file;
}

/* Splits a line, without its newline, which it changes. Returns 1 where it has nothing but a comment. */
static int split(char *line, const char **key, const char **value, struct wlb_error *error)
{
	static const char blank[] = " \t\r";
	line[strcspn(line, "#")] = '\0';
	line += strspn(line, blank);
	if (*line == '\0')
		return 1;
	char *equals = strchr(line, '=');
	if (equals == NULL)
		return wlb_fail(error, "'%.100s': a line is KEY = VALUE, such as coordinator = login1:8642", line);
	char *text = equals + 1 + strspn(equals + 1, blank);
	size_t length = strlen(text);
	while (length > 0 && strchr(blank, text[length - 1]) != NULL)
		text[--length] = '\0';
	*equals = '\0';
	line[strcspn(line, blank)] = '\0';
	*key = line;
	*value = text;
	return 0;
}

int wlb_conf_read(int (*take)(void *context, const char *key, const char *value, struct wlb_error *error),
                  void *context, struct wlb_error *error)
{
	char line[LINE_BYTES];
	const char *path = wlb_conf_path(), *key = NULL, *value = NULL;
	FILE *file = fopen(path, "re");
	int rc = 0, found;
	if (file == NULL && errno == ENOENT && named_file() == NULL)
		return 0;
	if (file == NULL)
		return wlb_fail(error, "file %s: cannot be opened: %s", path, strerror(errno));
	for (int number = 1; rc >= 0 && (found = wlb_line_read(file, line, sizeof(line), NULL, error)) != 0; number++) {
		rc = found < 0 ? -1 : split(line, &key, &value, error);
		if (rc == 0)
			rc = take(context, key, value, error);
		if (rc < 0)
			wlb_fail_in(error, "file %s, line %d", path, number);
	}
	fclose(file);
	return rc < 0 ? -1 : 0;
}
