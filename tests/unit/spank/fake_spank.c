#include "fake_spank.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <slurm/spank.h>

enum { VARIABLES = 64 };

static char logged[4096];
static char *variables[VARIABLES + 1]; /* NULL-terminated "NAME=value" */
static int options;

void slurm_error(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(logged, sizeof(logged), format, args);
	va_end(args);
}

spank_err_t spank_option_register(spank_t sp, struct spank_option *option)
{
	(void)sp;
	if (option->name == NULL || option->usage == NULL)
		return ESPANK_BAD_ARG;
	options++;
	return ESPANK_SUCCESS;
}

static int find(const char *name)
{
	size_t length = strlen(name);
	int i = 0;
	while (variables[i] && (strncmp(variables[i], name, length) != 0 || variables[i][length] != '='))
		i++;
	return i;
}

spank_err_t spank_setenv(spank_t sp, const char *name, const char *value, int overwrite)
{
	(void)sp;
	int i = find(name);
	if (i == VARIABLES)
		return ESPANK_NOSPACE;
	if (variables[i] && !overwrite)
		return ESPANK_ENV_EXISTS;
	free(variables[i]);
	return asprintf(&variables[i], "%s=%s", name, value) > 0 ? ESPANK_SUCCESS : ESPANK_ERROR;
}

spank_err_t spank_getenv(spank_t sp, const char *name, char *value, int size)
{
	(void)sp;
	const char *found = fake_spank_env(name);
	if (found == NULL)
		return ESPANK_ENV_NOEXIST;
	return snprintf(value, (size_t)size, "%s", found) < size ? ESPANK_SUCCESS : ESPANK_NOSPACE;
}

spank_err_t spank_unsetenv(spank_t sp, const char *name)
{
	(void)sp;
	int i = find(name);
	free(variables[i]);
	for (; i < VARIABLES && variables[i] != NULL; i++)
		variables[i] = variables[i + 1];
	return ESPANK_SUCCESS;
}

spank_err_t spank_get_item(spank_t sp, spank_item_t item, ...)
{
	(void)sp;
	if (item != S_JOB_ENV)
		return ESPANK_BAD_ARG;
	va_list args;
	va_start(args, item);
	*va_arg(args, char ***) = variables;
	va_end(args);
	return ESPANK_SUCCESS;
}

const char *fake_spank_logged(void)
{
	return logged;
}

const char *fake_spank_env(const char *name)
{
	int i = find(name);
	return variables[i] ? variables[i] + strlen(name) + 1 : NULL;
}

int fake_spank_options(void)
{
	return options;
}

void fake_spank_reset(void)
{
	for (int i = 0; i < VARIABLES; i++) {
		free(variables[i]);
		variables[i] = NULL;
	}
	logged[0] = '\0';
	options = 0;
}
