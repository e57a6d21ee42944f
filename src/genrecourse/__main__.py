"""python -m genrecourse"""

from genrecourse.cli import main

main()
