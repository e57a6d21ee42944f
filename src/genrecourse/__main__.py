"""python -m genrecourse"""

from genrecourse.apps.cli import main

main()
