#include "spank/options.h"

#include <stdlib.h>
#include <string.h>

#include "spank/model_path.h"

/* Slurm takes the strings as char *, and copies them. */
void wlb_spank_options_register(spank_t sp, spank_opt_cb_f take)
{
	for (int i = 0; i < WLB_JOB_OPTION_COUNT; i++) {
		const struct wlb_job_option *known = &wlb_job_options[i];
		struct spank_option option = {.name = (char *)known->flag + strlen("--"),
		                              .arginfo = (char *)known->value,
		                              .usage = (char *)known->help,
		                              .has_arg = known->default_value != NULL ? 2 : 1,
		                              .val = i,
		                              .cb = take};
		if (spank_option_register(sp, &option) != ESPANK_SUCCESS)
			slurm_error("wlb: Slurm does not register the option %s", known->flag);
	}
}

static bool has_value(const char *value)
{
	return value != NULL && value[0] != '\0' && strcmp(value, "(null)") != 0;
}

int wlb_spank_options_take(struct wlb_spank_options *options, enum wlb_job_option_id which, const char *value,
                           bool submitting, struct wlb_error *error)
{
	const struct wlb_job_option *known = &wlb_job_options[which];
	char text[PATH_MAX];
	if (known->default_value != NULL && !has_value(value))
		value = known->default_value;
	if (wlb_job_option_text(known, value, text, sizeof(text), error) != 0)
		return wlb_fail_in(error, "%s", known->flag);
	if (known->kind == WLB_JOB_FILE && submitting &&
	    wlb_model_path_check(value, getenv(known->variable), error) != 0)
		return -1;
	strcpy(options->text[which], text);
	return 0;
}

bool wlb_spank_options_active(const struct wlb_spank_options *options)
{
	const char *layout = options->text[WLB_JOB_LAYOUT];
	return layout[0] != '\0' && strcmp(layout, "off") != 0;
}

const char *wlb_spank_options_ineffective(const struct wlb_spank_options *options)
{
	if (options->text[WLB_JOB_LAYOUT][0] != '\0')
		return NULL;
	for (int i = 0; i < WLB_JOB_OPTION_COUNT; i++)
		if (options->text[i][0] != '\0')
			return wlb_job_options[i].flag;
	return NULL;
}
