/* launch_number.c - the table of numbers that kernels of some specs take at a launch. */
#include "recipe.h"

#include <float.h>
#include <math.h>
#include <string.h>

const fg_launch_number fg_launch_numbers[FG_LAUNCH_NUMBERS] = {
    [FG_NUMBER_SIGMOID_BIAS] = {"sigmoid_bias",
                                FG_GIVEN_SIGMOID_BIAS,
                                offsetof(fg_args, sigmoid_bias),
                                "normalizer=sigmoid",
                                {NAN, -1.5F},
                                -FLT_MAX,
                                FLT_MAX},
    [FG_NUMBER_KEEP] =
        {"keep", FG_GIVEN_KEEP, offsetof(fg_args, keep), "dropout=true", {0.9F, 0.5F}, 0, 1},
    [FG_NUMBER_EPS] = {"eps",
                       FG_GIVEN_EPS,
                       offsetof(fg_args, eps),
                       "a layer or RMS norm",
                       {NAN, 1e-3F},
                       0,
                       FLT_MAX},
};

float fg_launch_number_of(const fg_launch_number *number, const fg_args *args) {
  float value;
  memcpy(&value, (const char *)args + number->place, sizeof value);
  return value;
}

void fg_launch_values_fill(const fg_recipe *recipe, int which, fg_launch_values *values) {
  for (int i = 0; i < FG_LAUNCH_NUMBERS; i++) {
    const fg_launch_number *n = &fg_launch_numbers[i];
    if (values->given & n->given || !(recipe->takes >> i & 1) || isnan(n->tried[which])) continue;
    values->given |= n->given;
    values->value[i] = n->tried[which];
  }
}

void fg_launch_values_give(const fg_launch_values *values, fg_args *args) {
  for (int i = 0; i < FG_LAUNCH_NUMBERS; i++) {
    const fg_launch_number *n = &fg_launch_numbers[i];
    if (!(values->given & n->given)) continue;
    args->given |= n->given;
    memcpy((char *)args + n->place, &values->value[i], sizeof values->value[i]);
  }
}

void fg_launch_numbers_copy(const fg_args *from, fg_args *to) {
  for (int i = 0; i < FG_LAUNCH_NUMBERS; i++)
    memcpy((char *)to + fg_launch_numbers[i].place, (const char *)from + fg_launch_numbers[i].place,
           sizeof(float));
}

fg_status fg_recipe_take(fg_recipe *recipe, const char *name) {
  for (int i = 0; i < FG_LAUNCH_NUMBERS; i++) {
    if (!name || strcmp(fg_launch_numbers[i].name, name)) continue;
    recipe->takes |= 1u << i;
    return FG_OK;
  }
  return fg_fail(FG_EIO, "\"%.60s\" is no number of a launch", name ? name : "");
}
