"""Plans: made from what a method proposes, checked, chosen, worded and promised."""
